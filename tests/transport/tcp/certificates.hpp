/// Certificates for tests, made once per process and removed at its end. Thread-safe.
#pragma once

#include <string>

#include "transport/security/tls_files.hpp"

namespace troupe::transport::testing {

/// Of one authority: valid for names and addresses of this host.
[[nodiscard]] const security::TlsFiles& good_certificate();
/// Signed by the same authority, but expired yesterday.
[[nodiscard]] const security::TlsFiles& expired_certificate();
/// Valid, but of another authority. Its `ca` is the first authority's: the holder trusts our certificates, we do not trust its own.
[[nodiscard]] const security::TlsFiles& foreign_certificate();

}  // namespace troupe::transport::testing
