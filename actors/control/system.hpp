/// The actor system's settings: message types, and a scheduler that uses no CPU time when idle. Thread rule: made before the system.
#pragma once

#include "actors/protocol/handles.hpp"

namespace troupe::actors {

class SystemConfig : public caf::actor_system_config {
 public:
  SystemConfig();
};

}  // namespace troupe::actors
