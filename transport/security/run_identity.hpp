/// What the processes of one run show each other when a launcher has started them together and nobody has made certificates: an
/// authority that exists while it signs, and one certificate for all of them. On no disk.
/// Thread rule: values; MemoryFiles is a handle.
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

/// For processes that are reached under `hosts`. In force for 90 days from now (and an hour back): a connection that breaks is
/// made anew, and shows the certificate again; one that is longer than the run costs nothing, because the key dies with the run.
/// The authority's key is forgotten at once: nobody joins later. Errors: make_node's.
[[nodiscard]] core::Result<RunIdentity> make_run_identity(const std::vector<std::string>& hosts, std::time_t now);

/// An identity as files that exist in this process's memory only, as long as the object does.
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
