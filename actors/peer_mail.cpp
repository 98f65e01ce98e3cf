#include "actors/peer_mail.hpp"

#include <algorithm>
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
  if (taken_.contains(to)) return {};
  auto copy = std::find_if(copies_.begin(), copies_.end(), [](const auto& buffer) { return buffer.use_count() == 1; });
  if (copy == copies_.end()) {
    auto fresh = core::Buffer::allocate(allocator, vector.size());
    if (!fresh) return {};
    copy = copies_.insert(copies_.end(), std::make_shared<core::Buffer>(std::move(*fresh)));
  }
  kernels.copy((*copy)->view(), vector);
  taken_.insert(to);
  return {(*copy)->view(), *copy};
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
  taken_.clear();
  copies_.clear();
  inbox_.clear();
}

}  // namespace troupe::actors
