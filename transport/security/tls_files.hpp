/// The three PEM files that make a process a member of a cluster, and whether they are in order. Thread rule: plain
/// values; checking reads files and keeps nothing.
#pragma once

#include <ctime>
#include <string>

#include "core/error.hpp"
#include "transport/security/openssl.hpp"

namespace troupe::security {

/// Paths. All are set, or none: then there is no TLS, which is good for loopback only.
struct TlsFiles {
  std::string ca{};           // certificate of the cluster's authority: who it signed is let in
  std::string certificate{};  // of this node, signed by it
  std::string key{};          // that belongs to the certificate

  [[nodiscard]] bool empty() const noexcept { return ca.empty() && certificate.empty() && key.empty(); }
};

/// Errc::config that names TLS and what is missing when some are set and some are not.
[[nodiscard]] core::Result<void> check_complete(const TlsFiles& files);

/// As above, and none missing: readable, PEM, certificate and key belong together, in force at `now`, certificate
/// signed by the authority. Errc::config with one line: which file, what is wrong, what to do.
[[nodiscard]] core::Result<void> check(const TlsFiles& files, std::time_t now);

/// Whether `certificate`, which was read from `path`, is in force at `now`. Errc::config as above.
[[nodiscard]] core::Result<void> check_in_force(const std::string& path, X509* certificate, std::time_t now);

/// The first certificate or key in a PEM file. Errc::config as above.
[[nodiscard]] core::Result<Certificate> read_certificate(const std::string& path);
[[nodiscard]] core::Result<Key> read_key(const std::string& path);

}  // namespace troupe::security
