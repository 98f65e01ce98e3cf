/// The rejoin manager actor, one per run over nodes, spawned detached. After the loss of a worker it tries to connect to the worker's node
/// every 2 s, and orders a site there when the node is back. The coordinator decides whether and when the newcomer becomes a member.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/deployment/nodes.hpp"
#include "actors/protocol/handles.hpp"

namespace troupe::actors {

struct RejoinManagerSetup {
  std::shared_ptr<Network> network;
  std::vector<HostPort> nodes;     // by worker: the node's address
  std::vector<std::string> names;  // by worker: the node's name for the user
  std::vector<SiteOrder> orders;   // by worker: the order for its first site
  std::size_t sites = 0;
  std::string address;       // of site 0
  ExchangerActor exchanger;  // of site 0
  RecorderActor recorder;    // gets notes on nodes that are back but cannot join
};

class RejoinManagerBody;
struct RejoinManagerState {
  std::unique_ptr<RejoinManagerBody> body;
  static inline const char* name = "rejoin manager";
  RejoinManagerState();
  ~RejoinManagerState();
};

[[nodiscard]] RejoinManagerActor::behavior_type rejoin_manager(
    RejoinManagerActor::stateful_pointer<RejoinManagerState> self, RejoinManagerSetup setup);

/// Reads a checkpoint file as the start state for other sites. Errc::io.
[[nodiscard]] core::Result<StartPayload> read_start(const std::string& path);

}  // namespace troupe::actors
