/// Proxies of members of other sites. A proxy passes messages on to its member; vectors go through the site's exchanger. It quits when the
/// member quits, with the same reason: an actor that monitors the proxy monitors the member. Without a `member`, where the member's handle
/// is not needed, it passes on only what goes through the exchanger, and quits when it receives an exit message.
///
/// When a member is lost, its proxy answers open requests with the reason: CAF alone would let them wait for their deadlines. Sites and
/// nodes have proxies for the same reason.
#pragma once

#include <string>

#include "actors/protocol/handles.hpp"

namespace troupe::actors {

[[nodiscard]] WorkerActor::behavior_type worker_proxy(WorkerActor::pointer self, strategies::WorkerId worker,
                                                      WorkerActor member, ExchangerActor exchanger);
[[nodiscard]] ServerActor::behavior_type server_proxy(ServerActor::pointer self, strategies::ShardId shard,
                                                      ServerActor member, ExchangerActor exchanger);

/// Whether the actor that was asked has been lost, before it answered or before it was asked.
[[nodiscard]] bool is_gone(const caf::error& error);
/// The reason of a loss, as text for users.
[[nodiscard]] std::string reason_of(caf::actor_system& system, const caf::error& error);

[[nodiscard]] SiteActor::behavior_type site_proxy(SiteActor::pointer self, SiteActor site);
[[nodiscard]] NodeActor::behavior_type node_proxy(NodeActor::pointer self, NodeActor node);

}  // namespace troupe::actors
