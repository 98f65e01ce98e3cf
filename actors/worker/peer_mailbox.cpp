#include "actors/worker/peer_mailbox.hpp"

#include <algorithm>

namespace troupe::actors {

using strategies::Slot;
using strategies::WorkerId;

namespace {

std::vector<PeerMessageCount> list(const std::map<WorkerId, std::uint64_t>& counts) {
  std::vector<PeerMessageCount> list;
  list.reserve(counts.size());
  for (const auto& [peer, peer_messages] : counts) list.push_back({peer, peer_messages});
  return list;
}

}  // namespace

BorrowedView PeerMailbox::copy_for(WorkerId to, core::ConstSpan vector, const core::Kernels& kernels,
                                   core::Allocator& allocator) {
  if (!graph_.may_write(self_, to) || away_.contains(to)) return {};
  if (free_.empty()) {
    auto fresh = core::Buffer::allocate(allocator, vector.size());
    if (!fresh) return {};
    free_.push_back(std::make_shared<core::Buffer>(std::move(*fresh)));
  }
  auto copy = std::move(free_.back());
  free_.pop_back();
  if (allocator.space() == core::MemorySpace::device)
    kernels.copy(copy->view(), vector);
  else
    kernels.download(copy->view(), vector);
  away_.emplace(to, copy);
  ++sent_[to];
  return {copy->view(), copy};
}

void PeerMailbox::credit_returned(WorkerId from) {
  if (auto copy = away_.extract(from)) free_.push_back(std::move(copy.mapped()));
}

std::optional<Slot> PeerMailbox::receive(const PeerMessage& peer_message) {
  const bool unread =
      std::ranges::any_of(inbox_, [&](const auto& entry) { return entry.second.from == peer_message.from; });
  if (!graph_.may_write(peer_message.from, self_) || !is_member(peer_message.from) || unread) return {};
  ++received_[peer_message.from];
  auto index = strategies::kFirstPeerSlot;
  while (inbox_.contains(strategies::staged(index))) ++index;  // ends: there is a slot for each writer
  const auto slot = strategies::staged(index);
  inbox_.emplace(slot, peer_message);
  return slot;
}

WorkerId PeerMailbox::released(Slot slot) { return inbox_.extract(slot).mapped().from; }

bool PeerMailbox::is_member(WorkerId worker) const {
  return !members_ || std::ranges::binary_search(*members_, worker);
}

void PeerMailbox::members(const std::vector<WorkerId>& workers) {
  members_ = workers;
  std::erase_if(away_, [&](const auto& entry) { return !is_member(entry.first); });
}

std::vector<PeerMessageCount> PeerMailbox::sent() const { return list(sent_); }
std::vector<PeerMessageCount> PeerMailbox::received() const { return list(received_); }

bool PeerMailbox::has(const std::vector<PeerMessageCount>& expected) const {
  return std::ranges::all_of(expected, [this](const PeerMessageCount& from) {
    const auto found = received_.find(from.peer);
    return !is_member(from.peer) || (found == received_.end() ? 0 : found->second) >= from.peer_messages;
  });
}

void PeerMailbox::clear() {
  away_.clear();
  free_.clear();
  inbox_.clear();
}

}  // namespace troupe::actors
