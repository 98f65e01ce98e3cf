/// The TLS identity of a run whose processes one launcher started together, without prepared certificates: an authority that exists only
/// while it signs, and one certificate for all processes. Nothing is written to disk. Thread rule: values; MemoryFiles is a handle.
#pragma once

#include <array>
#include <ctime>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::security {

/// PEM.
struct RunIdentity {
  std::string ca{};
  std::string certificate{};
  std::string key{};
};

/// For processes reached under `hosts`. Valid from one hour ago for 90 days: a broken connection is made again and shows the certificate
/// again. A validity longer than the run is safe, because the key ends with the run. The authority's key is destroyed at once, so no
/// process can join later. Errors: those of make_node().
[[nodiscard]] core::Result<RunIdentity> make_run_identity(const std::vector<std::string>& hosts, std::time_t now);

/// An identity as files that exist only in this process's memory, for the lifetime of the object.
class MemoryFiles {
 public:
  /// Errc::io, no_space.
  [[nodiscard]] static core::Result<MemoryFiles> create(const RunIdentity& identity);
  MemoryFiles(MemoryFiles&& other) noexcept;
  MemoryFiles& operator=(MemoryFiles&&) = delete;
  ~MemoryFiles();

  [[nodiscard]] const TlsFiles& files() const noexcept { return files_; }

 private:
  MemoryFiles() = default;
  std::array<int, 3> descriptors_{-1, -1, -1};
  TlsFiles files_;
};

}  // namespace troupe::security
