/// TLS for browsers: the service shows its certificate and asks for none. Thread rule: OpenSSL locks what connections share.
#pragma once

#include <openssl/ssl.h>

#include <ctime>
#include <memory>

#include "core/error.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::service {

/// TLS 1.2 and later. Errc::config: the files are not complete, do not fit each other or are not valid at `now` (security::check).
[[nodiscard]] core::Result<std::shared_ptr<SSL_CTX>> make_browser_tls(const security::TlsFiles& files, std::time_t now);

}  // namespace troupe::service
