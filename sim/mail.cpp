#include "sim/mail.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe::sim {

namespace {

strategies::Slot slot_at(std::size_t place) {
  return strategies::staged(static_cast<std::uint8_t>(strategies::kFirstPeerSlot + place));
}

}  // namespace

bool Postbox::take_credit(strategies::WorkerId to) {
  if (std::find(taken_.begin(), taken_.end(), to) != taken_.end()) return false;
  taken_.push_back(to);
  return true;
}

strategies::Slot Postbox::receive(const Letter& letter) {
  auto place = std::find_if(inbox_.begin(), inbox_.end(), [](const auto& letter) { return !letter; });
  if (place == inbox_.end()) place = inbox_.insert(place, std::nullopt);
  *place = letter;
  if (inbox_.size() > strategies::kPeerSlots) throw std::logic_error("more unread letters than slots");
  return slot_at(static_cast<std::size_t>(place - inbox_.begin()));
}

std::vector<std::pair<strategies::Slot, Postbox::Letter>> Postbox::unread() const {
  std::vector<std::pair<strategies::Slot, Letter>> unread;
  for (std::size_t k = 0; k < inbox_.size(); ++k)
    if (inbox_[k]) unread.emplace_back(slot_at(k), *inbox_[k]);
  return unread;
}

Postbox::Letter Postbox::release(strategies::Slot slot) {
  auto& place = inbox_.at(slot.index - strategies::kFirstPeerSlot);
  const auto letter = place.value();
  place.reset();
  return letter;
}

}  // namespace troupe::sim
