/// Certificates for tests, made once per process and removed at its end. Thread-safe.
#pragma once

#include <string>

#include "transport/security/tls_files.hpp"

namespace troupe::transport::testing {

/// Of one authority: good for names and addresses of this host.
[[nodiscard]] const security::TlsFiles& good_certificate();
/// Signed by the same authority, but over since yesterday.
[[nodiscard]] const security::TlsFiles& expired_certificate();
/// Good, but of another authority. Its `ca` is the first authority's: who shows it trusts us, and we do not trust it.
[[nodiscard]] const security::TlsFiles& foreign_certificate();

}  // namespace troupe::transport::testing
