/// How a service asks nodes: as `troupe nodes` does. Thread-safe.
#pragma once

#include "service/nodes/node_registry.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::apps {

/// With these certificates; without any, only nodes of this host. Actors and their threads begin with the first question, so that a service
/// without nodes has none.
[[nodiscard]] service::AskNode node_asker(security::TlsFiles tls);

}  // namespace troupe::apps
