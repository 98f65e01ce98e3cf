/// The nodes of a run, for the process that begins it: connects to them, queries their facts, and checks that versions are equal.
/// One thread. Blocks.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "actors/control/network.hpp"
#include "actors/protocol/handles.hpp"

namespace troupe::actors {

struct Node {
  std::string name;  // "node2:4242", as the user wrote it
  HostPort at;
  NodeActor actor;  // none: not connected yet
  NodeFacts facts;
};

/// Queries a node's facts. Errc::peer_lost, timeout: the message has `name`; interrupted: `stop` was requested.
[[nodiscard]] core::Result<NodeFacts> facts_of(caf::actor_system& system, const NodeActor& node,
                                               const std::string& name, const std::stop_token& stop = {});

/// "h1:4242,h2:4242". Errc::config: an invalid address, an address that is listed twice in any form, or an empty list.
/// Errors name the `argument`.
[[nodiscard]] core::Result<std::vector<std::string>> parse_nodes(const std::string& list,
                                                                 const std::string& argument = "--nodes");

/// Connects to all nodes; at least `least` must answer, the others may be missing. Errors: those of Network::connect and facts_of;
/// Errc::config when a node runs another version than this program, or has two of the names.
[[nodiscard]] core::Result<std::vector<Node>> connect_nodes(caf::actor_system& system, Network& network,
                                                            const std::vector<std::string>& names, std::size_t least,
                                                            const std::string& version,
                                                            const std::stop_token& stop = {});

/// `program` ("0.1.0") and a fingerprint of the messages: "0.1.0, protocol 1a2b3c4d". It is equal in all processes of a run. Builds of one
/// version with different messages differ in it.
[[nodiscard]] std::string spoken_version(const std::string& program);
/// This process's facts as a node, without members, up_s and cpu. `data_host`: where endpoints listen.
[[nodiscard]] NodeFacts own_facts(const std::string& version, const std::string& data_host);

/// The GPUs of this machine; none where the driver's management library is not there, or fails.
[[nodiscard]] GpuReport own_gpus();

/// Queries what a node's GPUs are doing. Errors as facts_of().
[[nodiscard]] core::Result<GpuReport> gpus_of(caf::actor_system& system, const NodeActor& node,
                                              const std::string& name);

/// The address of this host from which packets to `there` leave: nodes reach this host there. Errc::config: no route.
[[nodiscard]] core::Result<std::string> host_towards(const HostPort& there);

}  // namespace troupe::actors
