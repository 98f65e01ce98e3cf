/// TLS 1.2 and later between members: each side shows a certificate, and accepts only certificates that the cluster's authority signed. One
/// context serves accepting and connecting.
#pragma once

#include <memory>
#include <string>

#include "core/error.hpp"
#include "transport/security/openssl.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::security {

/// Checks the files (as check()) and loads them once. Errc::config. All connections of an endpoint share the context; OpenSSL locks the
/// shared state.
[[nodiscard]] core::Result<std::shared_ptr<SSL_CTX>> make_tls_context(const TlsFiles& files, std::time_t now);

/// Whether others may find this process at `host` with the certificate in `files`: Errc::config if it does not name `host`, with the names
/// that it has.
[[nodiscard]] core::Result<void> check_names(const TlsFiles& files, const std::string& host);

/// Whether `certificate` names `host` as a subjectAltName. `host`: a DNS name, or an IP address without brackets.
[[nodiscard]] bool names_host(X509* certificate, const std::string& host);

}  // namespace troupe::security
