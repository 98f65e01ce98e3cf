/// The steward actor, one per run over nodes, spawned detached: where a worker was lost it looks for the node every other second, and
/// has a site made there when it is back. Whether and when somebody becomes a member is the coordinator's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/protocol/handles.hpp"
#include "actors/deployment/nodes.hpp"

namespace troupe::actors {

struct StewardSetup {
  std::shared_ptr<Network> network;
  std::vector<HostPort> nodes;     // by worker: where its node is
  std::vector<std::string> names;  // and what the user calls it
  std::vector<SiteOrder> orders;   // by worker: as it was made
  std::size_t sites = 0;
  std::string address;       // of site 0
  ExchangerActor exchanger;  // of site 0
  RecorderActor recorder;    // hears why a node that is back has no place
};

class StewardBody;
struct StewardState {
  std::unique_ptr<StewardBody> body;
  static inline const char* name = "steward";
  StewardState();
  ~StewardState();
};

[[nodiscard]] StewardActor::behavior_type steward(StewardActor::stateful_pointer<StewardState> self,
                                                  StewardSetup setup);

/// A file as what members elsewhere begin with. Errc::io.
[[nodiscard]] core::Result<StartCargo> read_start(const std::string& path);

}  // namespace troupe::actors
