/// The three PEM files that make a process a member of a cluster, and their checks. Thread rule: plain values; the checks read files and
/// keep nothing.
#pragma once

#include <ctime>
#include <string>

#include "core/error.hpp"
#include "transport/security/openssl.hpp"

namespace troupe::security {

/// Paths. All or none are set. None: no TLS, which is acceptable on loopback only.
struct TlsFiles {
  std::string ca{};           // certificate of the cluster's authority: its signature admits a member
  std::string certificate{};  // certificate of this node, signed by the authority
  std::string key{};          // private key of `certificate`

  [[nodiscard]] bool empty() const noexcept { return ca.empty() && certificate.empty() && key.empty(); }
};

/// Errc::config when only some paths are set; the message names TLS and the missing paths.
[[nodiscard]] core::Result<void> check_complete(const TlsFiles& files);

/// As above, and every path is set: the files are readable PEM, certificate and key match, the certificate is valid at `now` and signed by
/// the authority. Errc::config with one line: which file, what is wrong, what to do.
[[nodiscard]] core::Result<void> check(const TlsFiles& files, std::time_t now);

/// Whether `certificate`, read from `path`, is valid at `now`. Errc::config as above.
[[nodiscard]] core::Result<void> check_in_force(const std::string& path, X509* certificate, std::time_t now);

/// The first certificate or key in a PEM file. Errc::config as above.
[[nodiscard]] core::Result<Certificate> read_certificate(const std::string& path);
[[nodiscard]] core::Result<Key> read_key(const std::string& path);

}  // namespace troupe::security
