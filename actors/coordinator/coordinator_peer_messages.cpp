// The coordinator waits for peer messages in transit before it takes the workers' vectors: they are a part of the model.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "actors/coordinator/coordinator_body.hpp"

namespace troupe::actors {

/// Interrupted if a worker is lost meanwhile.
void CoordinatorBody::await_peer_messages(const Continuations& next) {
  ask_peer_messages(next, {peer_messages_.arrived(), setup_.clock->now()});
}

/// `last`: the number of arrived peer messages, and when it last grew. A worker answers at its next Tick at the latest, every second, with
/// the counts so far.
void CoordinatorBody::ask_peer_messages(const Continuations& next, const Arrivals& last) {
  if (machine_.ended()) return;
  const auto left = std::make_shared<std::size_t>(machine_.members().count());  // 0: further answers are ignored
  for (const auto worker : member_list()) {
    ask<PeerMessageCounts>(
        site_of(worker), member_silence(), actors_.workers[worker],
        [this, left, worker, next, last](const PeerMessageCounts& peer_messages) {
          if (*left == 0 || machine_.ended()) return;
          if (const auto refusal = MemberMessageChecks::check(peer_messages, actors_.workers.size())) {
            *left = 0;
            machine_.lost(worker, "it reports invalid counts of peer messages: " + *refusal);
            next.interrupted();
            return;
          }
          if (is_member(worker)) peer_messages_.heard(worker, peer_messages);
          if (--*left == 0) judge_peer_messages(next, last);
        },
        [this, left, worker, next](const caf::error& error) {
          if (std::exchange(*left, 0) > 0) missed(worker, error, next.interrupted);
        },
        PeerMessageCountsOrder{peer_messages_.expected_by(worker)});
  }
}

void CoordinatorBody::judge_peer_messages(const Continuations& next, const Arrivals& last) {
  const auto missing = peer_messages_.under_way();
  if (!missing) {
    // Only the shares of a weighted model must add up.
    const bool weighted = setup_.needs.model == strategies::ModelHome::weighted;
    const auto whole = weighted ? peer_messages_.balance() : core::Result<void>{};
    return whole ? next.done() : fail(whole.error().code, whole.error().message);
  }
  const Arrivals now{peer_messages_.arrived(), setup_.clock->now()};
  if (now.peer_messages > last.peer_messages) return ask_peer_messages(next, now);
  const double patience = setup_.settings->exchange.deadline_s;
  if (core::seconds(now.at - std::max(last.at, moved_at_)) < patience) return ask_peer_messages(next, last);
  fail(core::Errc::timeout,
       fmt::format("a peer message from worker {} to worker {} has not arrived; no bytes moved for "
                   "exchange.deadline_s = {:g}",
                   missing->first, missing->second, patience));
}

}  // namespace troupe::actors
