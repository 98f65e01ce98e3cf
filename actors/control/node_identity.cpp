#include "actors/control/node_identity.hpp"

#include <algorithm>
#include <random>

#include <caf/node_id.hpp>

namespace troupe::actors {

caf::actor_system::module* NodeIdentity::make(caf::actor_system& system, caf::detail::type_list<>) {
  return new NodeIdentity(system);
}

void NodeIdentity::init(caf::actor_system_config&) {
  std::random_device device;
  caf::node_id::default_data::host_id_type host;
  std::ranges::generate(host, [&] { return static_cast<std::uint8_t>(device()); });
  // The middleman has set the node id, and the broker copies it later. CAF has no setter.
  auto& node = const_cast<caf::node_id&>(system_.node());
  node = caf::make_node_id(device(), host);
}

}  // namespace troupe::actors
