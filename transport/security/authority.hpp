/// A private certificate authority for one cluster, and the certificates of its nodes: what `troupe certs` makes.
///
/// A directory holds ca.pem and ca.key, and NAME.pem and NAME.key per node. Keys (ECDSA P-256) are readable by their
/// owner only and never leave the directory by themselves: ca.key stays where certificates are made, a node gets ca.pem
/// and its own two files. Files are replaced as a whole. Thread rule: one caller per directory at a time.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "transport/security/openssl.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::security {

/// Seconds since 1970, both included.
struct Validity {
  std::time_t from{};
  std::time_t until{};
};
/// From an hour ago, for hosts whose clocks differ.
[[nodiscard]] Validity authority_validity(std::time_t now);  // 10 years
[[nodiscard]] Validity node_validity(std::time_t now);       // 2 years

struct Identity {
  Certificate certificate;
  Key key;
};

/// A self-signed authority that may sign nodes and no further authorities. Errc::internal when OpenSSL fails.
[[nodiscard]] core::Result<Identity> make_authority(Validity validity);

/// A member, for both ends of a connection. `hosts`: DNS names and IP addresses under which others reach it; its name is
/// always one, and so are localhost, 127.0.0.1 and ::1. Errc::usage for a name or host that is none.
[[nodiscard]] core::Result<Identity> make_node(const Identity& authority, const std::string& name,
                                               const std::vector<std::string>& hosts, Validity validity);

/// Writes ca.pem and ca.key, creating the directory. Errc::usage when there is one of them already, unless `force`;
/// Errc::io, no_space.
[[nodiscard]] core::Result<void> create_authority(const std::string& directory, std::time_t now, bool force);

/// Writes NAME.pem and NAME.key, signed by the directory's authority. Errc::config when that is missing, broken or
/// expired; otherwise as above.
[[nodiscard]] core::Result<TlsFiles> create_node(const std::string& directory, const std::string& name,
                                                 const std::vector<std::string>& hosts, std::time_t now, bool force);

/// Where create_authority() and create_node() put what belongs to `name`.
[[nodiscard]] TlsFiles files_of(const std::string& directory, const std::string& name);

struct Pem {
  std::string certificate, key;
};
/// Errc::internal when OpenSSL fails.
[[nodiscard]] core::Result<Pem> to_pem(const Identity& identity);

/// Writes one identity's two files. Errc::io, no_space.
[[nodiscard]] core::Result<void> write_identity(const Identity& identity, const std::string& certificate_path,
                                                const std::string& key_path);

}  // namespace troupe::security
