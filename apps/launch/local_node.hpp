/// A node on this host for one run: a child process that the run's workers live in, so that the loss of one costs neither the coordinator
/// nor the centre. Only this process can order anything there: both have a certificate that exists in their memory alone.
///
/// Thread rule: the main thread, before any other thread starts; it must live as long: the kernel kills the node when that thread ends.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "core/error.hpp"
#include "core/file_descriptor.hpp"
#include "transport/security/run_identity.hpp"

namespace troupe::apps {

class LocalNode {
 public:
  /// Returns when it listens. Errc::io.
  [[nodiscard]] static core::Result<std::unique_ptr<LocalNode>> start();
  /// Ends it; kills it if it stays.
  ~LocalNode();
  LocalNode(const LocalNode&) = delete;
  LocalNode& operator=(const LocalNode&) = delete;

  [[nodiscard]] const std::string& address() const noexcept { return address_; }  ///< "127.0.0.1:40123"
  [[nodiscard]] const security::TlsFiles& tls() const noexcept { return certificates_->files(); }

 private:
  LocalNode() = default;
  pid_t process_ = -1;
  core::FileDescriptor line_;  // its end tells the node to stop
  std::string address_;
  std::unique_ptr<security::MemoryFiles> certificates_;
};

}  // namespace troupe::apps
