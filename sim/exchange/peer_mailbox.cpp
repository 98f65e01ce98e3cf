#include "sim/exchange/peer_mailbox.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe::sim {

namespace {

strategies::Slot slot_at(std::size_t place) {
  return strategies::staged(static_cast<std::uint8_t>(strategies::kFirstPeerSlot + place));
}

}  // namespace

bool PeerMailbox::take_credit(strategies::WorkerId to) {
  if (std::find(taken_.begin(), taken_.end(), to) != taken_.end()) return false;
  taken_.push_back(to);
  return true;
}

strategies::Slot PeerMailbox::receive(const PeerMessage& peer_message) {
  auto place = std::find_if(inbox_.begin(), inbox_.end(), [](const auto& peer_message) { return !peer_message; });
  if (place == inbox_.end()) place = inbox_.insert(place, std::nullopt);
  *place = peer_message;
  if (inbox_.size() > strategies::kPeerSlots) throw std::logic_error("more unread peer messages than slots");
  return slot_at(static_cast<std::size_t>(place - inbox_.begin()));
}

std::vector<std::pair<strategies::Slot, PeerMailbox::PeerMessage>> PeerMailbox::unread() const {
  std::vector<std::pair<strategies::Slot, PeerMessage>> unread;
  for (std::size_t k = 0; k < inbox_.size(); ++k)
    if (inbox_[k]) unread.emplace_back(slot_at(k), *inbox_[k]);
  return unread;
}

PeerMailbox::PeerMessage PeerMailbox::release(strategies::Slot slot) {
  auto& place = inbox_.at(slot.index - strategies::kFirstPeerSlot);
  const auto peer_message = place.value();
  place.reset();
  return peer_message;
}

}  // namespace troupe::sim
