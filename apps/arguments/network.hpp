/// --ca, --cert and --key, for all commands that connect to other processes, and where these files are otherwise. Thread rule: the main
/// thread.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "apps/job_environment.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::apps {

void add_tls(CLI::App& app, security::TlsFiles& files);

/// The flags that were given, as a command line has them: " --ca ca.pem --key node.key".
[[nodiscard]] std::string tls_flags(const security::TlsFiles& flags);

/// The files of this process, each from its flag, or else from TROUPE_CA, TROUPE_CERT, TROUPE_KEY, or else ca.pem, node.pem, node.key in
/// $XDG_CONFIG_HOME/troupe (~/.config/troupe), if that exists. None: no TLS. Errc::config when only some are found; the message says
/// where each is looked for. `variable`: getenv.
[[nodiscard]] core::Result<security::TlsFiles> find_tls(const security::TlsFiles& flags,
                                                        const Variable& variable = ::getenv);

}  // namespace troupe::apps
