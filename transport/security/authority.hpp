/// A private certificate authority for one cluster, and the certificates of its nodes: the output of `troupe certs`.
///
/// A directory contains ca.pem and ca.key, and NAME.pem and NAME.key per node. Only the owner can read the keys (ECDSA P-256). This code
/// copies no key elsewhere: ca.key stays where certificates are made; the user gives a node ca.pem and the node's two files. Files are
/// replaced as a whole. Thread rule: one caller per directory at a time.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "transport/security/openssl.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::security {

/// Seconds since 1970, both limits included.
struct Validity {
  std::time_t from{};
  std::time_t until{};
};
/// Begins one hour before `now`, because clocks of hosts differ.
[[nodiscard]] Validity authority_validity(std::time_t now);  // 10 years
[[nodiscard]] Validity node_validity(std::time_t now);       // 2 years

struct Identity {
  Certificate certificate;
  Key key;
};

/// A self-signed authority that may sign nodes but no further authorities. Errc::internal when OpenSSL fails.
[[nodiscard]] core::Result<Identity> make_authority(Validity validity);

/// A node's identity, valid for both ends of a connection. `hosts`: DNS names and IP addresses under which others reach the node; `name`,
/// localhost, 127.0.0.1 and ::1 are always added. Errc::usage for an invalid name or host.
[[nodiscard]] core::Result<Identity> make_node(const Identity& authority, const std::string& name,
                                               const std::vector<std::string>& hosts, Validity validity);

/// Writes ca.pem and ca.key; creates the directory. Errc::usage when one of the files exists, unless `force`; Errc::io, no_space.
[[nodiscard]] core::Result<void> create_authority(const std::string& directory, std::time_t now, bool force);

/// Writes NAME.pem and NAME.key, signed by the directory's authority. Errc::config when the authority is missing, broken or expired;
/// otherwise the errors of create_authority().
[[nodiscard]] core::Result<TlsFiles> create_node(const std::string& directory, const std::string& name,
                                                 const std::vector<std::string>& hosts, std::time_t now, bool force);

/// The paths that create_authority() and create_node() write for `name`.
[[nodiscard]] TlsFiles files_of(const std::string& directory, const std::string& name);

struct Pem {
  std::string certificate, key;
};
/// Errc::internal when OpenSSL fails.
[[nodiscard]] core::Result<Pem> to_pem(const Identity& identity);

/// Writes the two files of one identity. Errc::io, no_space.
[[nodiscard]] core::Result<void> write_identity(const Identity& identity, const std::string& certificate_path,
                                                const std::string& key_path);

}  // namespace troupe::security
