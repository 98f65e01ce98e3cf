#include "sim/mail.hpp"

#include <algorithm>

namespace troupe::sim {

bool Postbox::take_credit(strategies::WorkerId to) {
  if (std::find(taken_.begin(), taken_.end(), to) != taken_.end()) return false;
  taken_.push_back(to);
  return true;
}

strategies::Slot Postbox::receive(const Letter& letter) {
  auto place = std::find_if(inbox_.begin(), inbox_.end(), [](const auto& letter) { return !letter; });
  if (place == inbox_.end()) place = inbox_.insert(place, std::nullopt);
  *place = letter;
  return strategies::staged(static_cast<std::uint8_t>(kFirstInbox + (place - inbox_.begin())));
}

Postbox::Letter Postbox::release(strategies::Slot slot) {
  auto& place = inbox_.at(slot.index - kFirstInbox);
  const auto letter = place.value();
  place.reset();
  --expected_;
  return letter;
}

}  // namespace troupe::sim
