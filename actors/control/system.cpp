#include "actors/control/system.hpp"

#include <algorithm>
#include <thread>

namespace troupe::actors {

SystemConfig::SystemConfig() {
  add_message_types<caf::id_block::troupe>();
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", std::max<std::size_t>(2, std::thread::hardware_concurrency() / 2));
}

}  // namespace troupe::actors
