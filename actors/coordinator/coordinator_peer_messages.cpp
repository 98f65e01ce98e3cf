// The coordinator waits for peer messages in transit before it takes the workers' vectors: they are a part of the model.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "actors/coordinator/coordinator_body.hpp"

namespace troupe::actors {

/// Calls `absent` if a worker is lost meanwhile.
void CoordinatorBody::await_peer_messages(const Next& next, const Next& absent) {
  if (!setup_.needs.peers) return next();
  ask_peer_messages(next, absent, {peer_messages_.arrived(), setup_.clock->now()});
}

/// `last`: the number of arrived peer messages, and when it last grew. A worker answers at its next Tick at the latest, every second, with
/// the counts so far.
void CoordinatorBody::ask_peer_messages(const Next& next, const Next& absent, const Arrivals& last) {
  if (ended_ || gives_way()) return;
  const auto left = std::make_shared<std::size_t>(members());  // 0: further answers are ignored
  for (const auto worker : member_list()) {
    ask<PeerMessageCounts>(
        site_of(worker), member_silence(), actors_.workers[worker],
        [this, left, worker, next, absent, last](const PeerMessageCounts& peer_messages) {
          if (*left == 0 || ended_) return;
          if (const auto refusal = MemberRules::check(peer_messages, actors_.workers.size())) {
            *left = 0;
            lose(worker, "it reports invalid counts of peer messages: " + *refusal);
            if (!ended_) absent();
            return;
          }
          if (is_member(worker)) peer_messages_.heard(worker, peer_messages);
          if (--*left == 0) judge_peer_messages(next, absent, last);
        },
        [this, left, worker, absent](const caf::error& error) {
          if (std::exchange(*left, 0) > 0) missed(worker, error, absent);
        },
        PeerMessageCountsOrder{peer_messages_.expected_by(worker)});
  }
}

void CoordinatorBody::judge_peer_messages(const Next& next, const Next& absent, const Arrivals& last) {
  const auto missing = peer_messages_.under_way();
  if (!missing) {
    if (auto whole = peer_messages_.balance(); !whole) return fail(whole.error().code, whole.error().message);
    return next();
  }
  const Arrivals now{peer_messages_.arrived(), setup_.clock->now()};
  if (now.peer_messages > last.peer_messages) return ask_peer_messages(next, absent, now);
  const double patience = setup_.settings->exchange.deadline_s;
  if (core::seconds(now.at - std::max(last.at, moved_at_)) < patience) return ask_peer_messages(next, absent, last);
  fail(core::Errc::timeout,
       fmt::format("what worker {} has written to worker {} has not arrived, and nothing has moved "
                   "for exchange.deadline_s = {:g}",
                   missing->first, missing->second, patience));
}

}  // namespace troupe::actors
