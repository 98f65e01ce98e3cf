#include "actors/worker/peer_mail.hpp"

#include <algorithm>

namespace troupe::actors {

using strategies::Slot;
using strategies::WorkerId;

namespace {

std::vector<LetterCount> list(const std::map<WorkerId, std::uint64_t>& counts) {
  std::vector<LetterCount> list;
  for (const auto& [peer, letters] : counts) list.push_back({peer, letters});
  return list;
}

}  // namespace

Lent PeerPostbox::copy_for(WorkerId to, core::ConstSpan vector, const core::Kernels& kernels,
                           core::Allocator& allocator) {
  if (!graph_.may_write(self_, to) || away_.contains(to)) return {};
  if (free_.empty()) {
    auto fresh = core::Buffer::allocate(allocator, vector.size());
    if (!fresh) return {};
    free_.push_back(std::make_shared<core::Buffer>(std::move(*fresh)));
  }
  auto copy = std::move(free_.back());
  free_.pop_back();
  kernels.copy(copy->view(), vector);
  away_.emplace(to, copy);
  ++sent_[to];
  return {copy->view(), copy};
}

void PeerPostbox::credit_returned(WorkerId from) {
  if (auto copy = away_.extract(from)) free_.push_back(std::move(copy.mapped()));
}

std::optional<Slot> PeerPostbox::receive(const PeerLetter& letter) {
  const bool unread = std::ranges::any_of(inbox_, [&](const auto& entry) { return entry.second.from == letter.from; });
  if (!graph_.may_write(letter.from, self_) || !is_member(letter.from) || unread) return {};
  ++received_[letter.from];
  auto index = strategies::kFirstPeerSlot;
  while (inbox_.contains(strategies::staged(index))) ++index;  // there are as many as writers
  const auto slot = strategies::staged(index);
  inbox_.emplace(slot, letter);
  return slot;
}

WorkerId PeerPostbox::released(Slot slot) { return inbox_.extract(slot).mapped().from; }

bool PeerPostbox::is_member(WorkerId worker) const {
  return !members_ || std::ranges::binary_search(*members_, worker);
}

void PeerPostbox::members(const std::vector<WorkerId>& workers) {
  members_ = workers;
  std::erase_if(away_, [&](const auto& entry) { return !is_member(entry.first); });
}

std::vector<LetterCount> PeerPostbox::sent() const { return list(sent_); }
std::vector<LetterCount> PeerPostbox::received() const { return list(received_); }

bool PeerPostbox::has(const std::vector<LetterCount>& expected) const {
  return std::ranges::all_of(expected, [this](const LetterCount& from) {
    const auto found = received_.find(from.peer);
    return !is_member(from.peer) || (found == received_.end() ? 0 : found->second) >= from.letters;
  });
}

void PeerPostbox::clear() {
  away_.clear();
  free_.clear();
  inbox_.clear();
}

}  // namespace troupe::actors
