/// What commands that look at a service take beside its address. Thread rule: the main thread.
#pragma once

#include <CLI/CLI.hpp>

#include "apps/client/service_address.hpp"

namespace troupe::apps {

/// --token-file and --ca
void add_service_access(CLI::App& app, ServiceAccess& access);

}  // namespace troupe::apps
