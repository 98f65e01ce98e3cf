/// A site in a node's process, spawned detached: a Site that is driven by messages from the coordinator's process. It builds the RunSpec
/// from the configuration in the order, and opens the data set here.
#pragma once

#include <memory>
#include <string>

#include "actors/deployment/node.hpp"

namespace troupe::actors {

class SiteBody;
struct SiteState {
  std::unique_ptr<SiteBody> body;
  static inline const char* name = "site";
  SiteState();
  ~SiteState();
};

[[nodiscard]] SiteActor::behavior_type site_actor(SiteActor::stateful_pointer<SiteState> self,
                                                  std::shared_ptr<const NodeSetup> setup);

/// "worker 3 of mnist-easgd": a site's members, for messages to users.
[[nodiscard]] std::string describe(const SiteOrder& order);

}  // namespace troupe::actors
