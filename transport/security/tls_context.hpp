/// TLS 1.2 and later between members: each side shows a certificate, and accepts only what the cluster's authority has
/// signed. Used for accepting and for dialling alike.
#pragma once

#include <memory>
#include <string>

#include "core/error.hpp"
#include "transport/security/openssl.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::security {

/// Checks the files (as check()) and loads them. Errc::config. Shared by all connections of an endpoint; OpenSSL locks
/// what they share. The files are not read again.
[[nodiscard]] core::Result<std::shared_ptr<SSL_CTX>> make_tls_context(const TlsFiles& files, std::time_t now);

/// Whether `certificate` names `host`, a DNS name or an IP address without brackets, as a subjectAltName.
[[nodiscard]] bool names_host(X509* certificate, const std::string& host);

}  // namespace troupe::security
