#include "tests/contract/peer_message_probe.hpp"

#include <algorithm>
#include <cmath>

#include "tests/contract/evidence.hpp"
#include "tests/contract/promises.hpp"
#include "tests/contract/protocol.hpp"

namespace troupe::contract {

using namespace strategies;

namespace {

constexpr Slot kPeerMessage = staged(0), kPushed = staged(1);

/// A peer message's weight is its number. Its content in units of u follows from it.
double times_of(double weight) { return 1 + std::fmod(weight, 50); }

std::string peer_message(const PeerMessageArrived& message, WorkerId self) {
  return "peer message " + std::to_string(message.weight) + " of worker " + std::to_string(message.from) + " to " +
         std::to_string(self);
}

}  // namespace

void PeerMessageProbe::on(const Started&, const WorkerContext&, WorkerActions& then) {
  begin_evidence(then);
  pushing_ = true;
  then.pull(exchange_id(next_push_++, true), kUnit);
}

void PeerMessageProbe::on(const StepDone&, const WorkerContext& context, WorkerActions& then) {
  look_at_skips(context.self);
  read_all(then);
  write(context, then);
  auto random = context.random();
  if (random.below(3) == 0) return push(then);  // ExchangeDone computes
  then.compute();
}

void PeerMessageProbe::write(const WorkerContext& context, WorkerActions& then) {
  auto random = context.random();
  auto peers = context.membership.workers;
  std::erase(peers, context.self);
  for (const auto peer : peers) {
    for (auto left = random.below(3); left > 0; --left) {  // the second of two finds no credit
      const auto weight = static_cast<double>(next_peer_message_++);
      const bool again = !sent_.empty() && sent_.back().to == peer;
      sent_.push_back({.to = peer, .weight = weight, .has_no_credit = again});
      fill_with(then, kPeerMessage, times_of(weight));
      then.send(peer, kPeerMessage, weight);
      fill_with(then, kPeerMessage, -1);
    }
  }
}

void PeerMessageProbe::on(const SendSkipped& event, const WorkerContext& context, WorkerActions&) {
  const auto sent = std::find_if(sent_.begin(), sent_.end(), [&](const Sent& s) {
    return s.to == event.to && s.weight == event.weight && !s.skipped;
  });
  look(Promise::skip_told_in_time, sent != sent_.end(), [&] {
    return "worker " + std::to_string(context.self) + " is told of peer message " + std::to_string(event.weight) +
           " to " + std::to_string(event.to);
  });
  sent->skipped = true;
}

/// Checks the sends of the previous step.
void PeerMessageProbe::look_at_skips(WorkerId self) {
  for (const auto& sent : sent_) {
    if (!sent.skipped) posted();
    if (sent.has_no_credit)
      look(Promise::skip_told_in_time, sent.skipped, [&] {
        return "worker " + std::to_string(self) + " was not told that peer message " + std::to_string(sent.weight) +
               " to " + std::to_string(sent.to) + " was not sent, or has had credit for two";
      });
  }
  sent_.clear();
}

void PeerMessageProbe::on(const PeerMessageArrived& event, const WorkerContext& context, WorkerActions& then) {
  const auto seen = [&] { return peer_message(event, context.self); };
  auto& latest = latest_[event.from];
  look(Promise::peer_messages_in_order, event.weight > latest, seen);
  latest = event.weight;
  look(Promise::peer_message_one_unread,
       std::none_of(unread_.begin(), unread_.end(),
                    [&](const PeerMessageArrived& other) { return other.from == event.from; }),
       seen);
  look(Promise::peer_message_slot_kept,
       event.slot != kPeerMessage && event.slot != kPushed && event.slot.kind == SlotKind::staged &&
           std::none_of(unread_.begin(), unread_.end(),
                        [&](const PeerMessageArrived& other) { return other.slot == event.slot; }),
       seen);
  read();
  unread_.push_back(event);
  if (!stopped_) return;
  read_all(then);
  // A stopped worker without a pending exchange is done: a push would come too late. If one is pending, a further push carries the errors.
  if (pushing_) push(then);
}

/// A newcomer numbers its messages anew.
void PeerMessageProbe::on(const MembershipChanged& event, const WorkerContext&, WorkerActions&) {
  std::erase_if(latest_,
                [&](const auto& peer) { return !std::ranges::binary_search(event.membership.workers, peer.first); });
}

void PeerMessageProbe::read_all(WorkerActions& then) {
  for (const auto& message : std::exchange(unread_, {})) {
    if (here_) expect(then, message.slot, times_of(message.weight));
    if (here_) kept(Promise::peer_message_as_sent);
  }
}

void PeerMessageProbe::push(WorkerActions& then) {
  late_ = pushing_;
  if (std::exchange(pushing_, true)) return;
  fill_unit(then, kPushed);
  then.push(exchange_id(next_push_++, true), kPushed);
}

void PeerMessageProbe::on(const Replied& event, const WorkerContext&, WorkerActions&) {
  versions_[event.shard] = event.version;
}

void PeerMessageProbe::on(const ExchangeDone&, const WorkerContext&, WorkerActions& then) {
  if (!std::exchange(here_, true)) {
    for (const auto& [shard, version] : versions_) unit_is_of(then, version, {shard, 1});
    unit_is_here(then);
  }
  pushing_ = false;
  if (!stopped_) return then.compute();
  if (late_) push(then);
}

void PeerMessageProbe::on(const Stopped&, const WorkerContext& context, WorkerActions& then) {
  stopped_ = true;
  look_at_skips(context.self);
  read_all(then);
  push(then);
}

}  // namespace troupe::contract
