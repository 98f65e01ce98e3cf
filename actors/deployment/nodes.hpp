/// The nodes that a run goes to, seen from the process that begins it: connected, asked who they are, and found to be of one kind.
/// One thread.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "actors/protocol/handles.hpp"
#include "actors/control/network.hpp"

namespace troupe::actors {

struct Node {
  std::string name;  // "node2:4242", as the user wrote it
  HostPort at;
  NodeActor actor;  // none: it is not there yet
  NodeFacts facts;
};

/// What a node says of itself. Errc::peer_lost, timeout: names it; interrupted: `stop` was requested.
[[nodiscard]] core::Result<NodeFacts> facts_of(caf::actor_system& system, const NodeActor& node,
                                               const std::string& name, const std::stop_token& stop = {});

/// "h1:4242,h2:4242". Errc::config for what is no address, a node that stands there twice, and nothing at all.
[[nodiscard]] core::Result<std::vector<std::string>> parse_nodes(const std::string& list);

/// All of them, but that those beyond `least` may be missing. Errors: Network::connect's; Errc::config when a node runs another
/// version than this program.
[[nodiscard]] core::Result<std::vector<Node>> connect_nodes(caf::actor_system& system, Network& network,
                                                            const std::vector<std::string>& names, std::size_t least,
                                                            const std::string& version,
                                                            const std::stop_token& stop = {});

/// `program` ("0.1.0") and what its messages are like: "0.1.0, protocol 1a2b3c4d". Processes of one run say the same; programs of one
/// version that would misread each other's messages do not.
[[nodiscard]] std::string spoken_version(const std::string& program);
/// What this process would say of itself as a node, members apart. `data_host`: where endpoints listen.
[[nodiscard]] NodeFacts own_facts(const std::string& version, const std::string& data_host);

/// The address of this host that packets to `there` leave from: where nodes reach it. Errc::config when there is no way.
[[nodiscard]] core::Result<std::string> host_towards(const HostPort& there);

}  // namespace troupe::actors
