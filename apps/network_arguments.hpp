/// --ca, --cert and --key, for all commands that connect to other processes. Thread rule: the main thread.
#pragma once

#include <CLI/CLI.hpp>

#include "transport/security/tls_files.hpp"

namespace troupe::apps {

void add_tls(CLI::App& app, security::TlsFiles& files);

}  // namespace troupe::apps
