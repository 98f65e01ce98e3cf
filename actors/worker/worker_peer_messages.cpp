// A worker's peer messages, and its answers to the coordinator while training is paused.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "actors/protocol/supervision.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "actors/worker/worker_body.hpp"
#include "nn/checkpoint/own_state.hpp"
#include "nn/hash.hpp"

namespace troupe::actors {

bool WorkerBody::send(const strategies::SendPeer& message) {
  auto copy = mailbox_->copy_for(message.to, memory_->view(message.slot), memory_->kernels(), memory_->loans());
  if (!copy.owner) return false;
  count_bytes(experiment::Purpose::peer, message.to, wire_bytes_->peer_message(message.to, copy.data.size()));
  flush_before_exchange();
  self_->send(actors_.workers[message.to], PeerMessage{setup_.self, message.weight}, std::move(copy));
  return true;
}

void WorkerBody::peer_message(const PeerMessage& peer_message, const BorrowedView& vector) {
  if (failed_) return;
  const auto slot = mailbox_->receive(peer_message);
  if (!slot) return;  // dropped: see PeerMailbox::receive
  memory_->mount(*slot, vector);
  host_->peer_message_arrived({.from = peer_message.from, .weight = peer_message.weight, .slot = *slot});
  after_event();
}

void WorkerBody::release(strategies::Slot slot) {
  memory_->dismount(slot);
  self_->send(actors_.workers[mailbox_->released(slot)], PeerCredit{setup_.self});
}

void WorkerBody::credit(const PeerCredit& credit) { mailbox_->credit_returned(credit.from); }

// ---- while training is paused

/// A worker that waits for a batch has begun no step: the host may now handle what has arrived. Before begin() the answer waits for
/// begin().
caf::result<Settled> WorkerBody::settle_down() {
  if (failed_ || (host_ && !wants_batch_)) return caf::sec::runtime_error;
  settling_ = self_->make_response_promise<Settled>();
  const auto answer = *settling_;
  after_event();
  return answer;
}

/// Membership news may arrive after settle_down(): the host handles it before the state is taken.
caf::result<MemberState> WorkerBody::tell_state() {
  if (failed_ || (host_ && !wants_batch_)) return caf::sec::runtime_error;
  asked_state_ = self_->make_response_promise<MemberState>();
  const auto answer = *asked_state_;
  after_event();
  return answer;
}

MemberState WorkerBody::state() const {
  MemberState state{.state = host_->state(),
                    .version = 0,
                    .peer_messages = {},
                    .peer_message_slots = {},
                    .steps = memory_->replica().state_of_steps()};
  for (const auto& [slot, peer_message] : mailbox_->unread()) {
    state.peer_messages.push_back(peer_message);
    state.peer_message_slots.push_back(slot);
  }
  return state;
}

/// REQUIRES that no step begins meanwhile; the coordinator ensures it. May be called before begin().
caf::result<PeerMessageCounts> WorkerBody::tell_peer_messages(const PeerMessageCountsOrder& order) {
  if (failed_) return caf::sec::runtime_error;
  expected_ = order.expected;
  asked_peer_messages_ = self_->make_response_promise<PeerMessageCounts>();
  const auto answer = *asked_peer_messages_;
  answer_peer_messages(false);
  return answer;
}

/// `now`: do not wait for messages in transit.
void WorkerBody::answer_peer_messages(bool now) {
  if (!asked_peer_messages_ || !host_ || !(now || mailbox_->has(expected_))) return;
  // The journal holds the received messages before the coordinator acts on the answer: that may end the run.
  if (!journal_.empty()) self_->send(actors_.recorder, journal_.take());
  asked_peer_messages_->deliver(peer_messages());
  asked_peer_messages_.reset();
}

PeerMessageCounts WorkerBody::peer_messages() const {
  PeerMessageCounts peer_messages{
      .weight = host_->weight(), .sent = mailbox_->sent(), .received = mailbox_->received(), .unread = {}, .slots = {}};
  for (const auto& [slot, peer_message] : mailbox_->unread()) {
    peer_messages.unread.push_back(peer_message);
    peer_messages.slots.push_back(slot);
  }
  return peer_messages;
}

// ---- copies of vectors, and of the state of an optimizer that is the replica's own

caf::result<SnapshotTaken> WorkerBody::snapshot(const SnapshotOrder& order, const BorrowedView& space) {
  const auto source = memory_ ? memory_->view(order.slot) : core::Span{};
  if (source.empty() || source.size() != space.data.size()) return caf::sec::invalid_argument;
  memory_->kernels().download(space.data, source);
  const SnapshotTaken taken{.id = order.id,
                            .hash = nn::hash64(std::as_bytes(space.data)),
                            .version = updates(),
                            .weight = host_->weight(),
                            .optimizer_steps = host_->optimizer_steps()};
  if (setup_.journal && order.journalled) {
    journal_.add(encode(SnapshotRecord{false, setup_.self, order.slot, taken.hash}));
    self_->send(actors_.recorder, journal_.take());
  }
  return taken;
}

/// Not journalled: a replay reads it where a segment begins.
caf::result<SnapshotTaken> WorkerBody::own_state(const SnapshotOrder& order, const BorrowedView& space) {
  if (failed_ || !memory_ || !host_) return caf::sec::runtime_error;
  if (order.offset == 0) {
    auto* const optimizer = nn::own_optimizer_of(memory_->replica());
    core::Result<std::vector<std::byte>> state;
    if (optimizer != nullptr) state = optimizer->own_state();
    if (!state) {
      const auto why = fmt::format("worker {}, after step {}: the state of its optimizer: {}", setup_.self,
                                   host_->steps(), state.error().message);
      step_failed({state.error().code, why});
      // The answer and the report of the failure may take different ways: the first one of them to arrive says the same.
      return state.error().code == core::Errc::program ? program_failure(why)
                                                       : caf::make_error(caf::sec::runtime_error, why);
    }
    own_state_ = std::move(*state);
  }
  if (order.offset > own_state_.size()) return caf::sec::invalid_argument;
  const auto room = std::as_writable_bytes(space.data);
  const auto rest = std::span(std::as_const(own_state_)).subspan(order.offset);
  const auto piece = rest.first(std::min(rest.size(), room.size()));
  std::ranges::copy(piece, room.begin());
  const SnapshotTaken taken{.id = order.id,
                            .hash = nn::hash64(piece),
                            .version = updates(),
                            .weight = host_->weight(),
                            .optimizer_steps = host_->optimizer_steps(),
                            .bytes = own_state_.size()};
  if (piece.size() == rest.size()) own_state_ = {};
  return taken;
}

}  // namespace troupe::actors
