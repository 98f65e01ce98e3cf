/// Members of other sites, as a site sees them: actors that pass what they are told on, vectors by way of the site's exchanger.
/// They quit when the member does, for the same reason: who watches a stand-in watches the member. Without a `member`, where the
/// member itself need not be known, they pass on vectors alone, and quit when they are told to.
///
/// What is asked of a member that is lost meanwhile is answered with the reason: CAF alone would let it wait for its deadline. That is
/// what stands in for sites and nodes, too.
#pragma once

#include <string>

#include "actors/protocol/handles.hpp"

namespace troupe::actors {

[[nodiscard]] WorkerActor::behavior_type stand_in_worker(WorkerActor::pointer self, strategies::WorkerId worker,
                                                         WorkerActor member, ExchangerActor exchanger);
[[nodiscard]] ServerActor::behavior_type stand_in_server(ServerActor::pointer self, strategies::ShardId shard,
                                                         ServerActor member, ExchangerActor exchanger);

/// Whoever was asked is not there any more: lost before it answered, or before it was asked.
[[nodiscard]] bool is_gone(const caf::error& error);
/// Why somebody is gone, for people.
[[nodiscard]] std::string reason_of(caf::actor_system& system, const caf::error& error);

[[nodiscard]] SiteActor::behavior_type stand_in_site(SiteActor::pointer self, SiteActor site);
[[nodiscard]] NodeActor::behavior_type stand_in_node(NodeActor::pointer self, NodeActor node);

}  // namespace troupe::actors
