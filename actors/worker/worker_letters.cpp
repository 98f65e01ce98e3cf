// A worker's letters to its peers, and what it says of itself while training stands still.
#include "actors/protocol/vocabulary.hpp"
#include "actors/worker/worker_body.hpp"

namespace troupe::actors {

bool WorkerBody::send(const strategies::SendPeer& message) {
  auto copy =
      postbox_->copy_for(message.to, memory_->view(message.slot), setup_.backend->kernels(), *setup_.compile.arenas);
  if (!copy.owner) return false;
  progress_.bytes += wire_bytes_->letter(message.to, copy.data.size());
  flush_before_exchange();
  self_->send(company_.workers[message.to], PeerLetter{setup_.self, message.weight}, std::move(copy));
  return true;
}

void WorkerBody::letter(const PeerLetter& letter, const Lent& vector) {
  if (failed_) return;
  const auto slot = postbox_->receive(letter);
  if (!slot) return;  // it goes the way of whoever wrote it
  memory_->mount(*slot, vector);
  host_->peer_mail({.from = letter.from, .weight = letter.weight, .slot = *slot});
  settle();
}

void WorkerBody::release(strategies::Slot slot) {
  memory_->dismount(slot);
  self_->send(company_.workers[postbox_->released(slot)], PeerCredit{setup_.self});
}

void WorkerBody::credit(const PeerCredit& credit) { postbox_->credit_returned(credit.from); }

// ---- while training stands still

/// A worker that waits for a batch has begun no step: what has arrived may be told now. One that has not heard of the company settles
/// down when it has.
caf::result<Settled> WorkerBody::settle_down() {
  if (failed_ || (host_ && !wants_batch_)) return caf::sec::runtime_error;
  settling_ = self_->make_response_promise<Settled>();
  const auto answer = *settling_;
  settle();
  return answer;
}

/// Once it has settled down it may still hear of others that are gone, or have come: that is told first.
caf::result<MemberState> WorkerBody::tell_state() {
  if (failed_ || (host_ && !wants_batch_)) return caf::sec::runtime_error;
  asked_state_ = self_->make_response_promise<MemberState>();
  const auto answer = *asked_state_;
  settle();
  return answer;
}

MemberState WorkerBody::state() const {
  MemberState state{.state = host_->state(), .version = 0, .letters = {}, .letter_slots = {}};
  for (const auto& [slot, letter] : postbox_->unread()) {
    state.letters.push_back(letter);
    state.letter_slots.push_back(slot);
  }
  return state;
}

/// Steps must not begin meanwhile: who asks has seen to it. It may ask before the worker has heard of the company.
caf::result<Letters> WorkerBody::tell_letters(const LettersOrder& order) {
  if (failed_) return caf::sec::runtime_error;
  expected_ = order.expected;
  asked_letters_ = self_->make_response_promise<Letters>();
  const auto answer = *asked_letters_;
  answer_letters(false);
  return answer;
}

/// `now`: also without those that are still on their way.
void WorkerBody::answer_letters(bool now) {
  if (!asked_letters_ || !host_ || !(now || postbox_->has(expected_))) return;
  // What has come stands in the journal before anybody acts on it: the run may end with that.
  if (!journal_.empty()) self_->send(company_.recorder, journal_.take());
  asked_letters_->deliver(letters());
  asked_letters_.reset();
}

Letters WorkerBody::letters() const {
  Letters letters{
      .weight = host_->weight(), .sent = postbox_->sent(), .received = postbox_->received(), .unread = {}, .slots = {}};
  for (const auto& [slot, letter] : postbox_->unread()) {
    letters.unread.push_back(letter);
    letters.slots.push_back(slot);
  }
  return letters;
}

}  // namespace troupe::actors
