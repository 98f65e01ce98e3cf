#include "actors/peer_mail.hpp"

#include <stdexcept>

namespace troupe::actors {

using strategies::Slot;
using strategies::WorkerId;

namespace {

constexpr int kFirstInbox = 64;  // staged slots from here on are the port's
constexpr int kInboxes = 256 - kFirstInbox;

}  // namespace

Lent PeerPostbox::copy_for(WorkerId to, core::ConstSpan vector, const core::Kernels& kernels,
                           core::Allocator& allocator) {
  if (away_.contains(to)) return {};
  if (free_.empty()) {
    auto fresh = core::Buffer::allocate(allocator, vector.size());
    if (!fresh) return {};
    free_.push_back(std::make_shared<core::Buffer>(std::move(*fresh)));
  }
  auto copy = std::move(free_.back());
  free_.pop_back();
  kernels.copy(copy->view(), vector);
  away_.emplace(to, copy);
  return {copy->view(), copy};
}

void PeerPostbox::credit_returned(WorkerId from) {
  if (auto copy = away_.extract(from)) free_.push_back(std::move(copy.mapped()));
}

Slot PeerPostbox::receive(const PeerLetter& letter) {
  for (int k = 0; k < kInboxes; ++k) {
    const auto slot = strategies::staged(static_cast<std::uint8_t>(kFirstInbox + k));
    if (inbox_.emplace(slot, letter).second) return slot;
  }
  throw std::logic_error("more unread letters than inboxes");
}

WorkerId PeerPostbox::released(Slot slot) { return inbox_.extract(slot).mapped().from; }

void PeerPostbox::clear() {
  away_.clear();
  free_.clear();
  inbox_.clear();
}

}  // namespace troupe::actors
