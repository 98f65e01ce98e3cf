/// Letters between workers, one worker's side: whom it may write to, the copies on their way, the slots in which letters lie until they
/// have been read, and how many went each way. A worker has one letter on its way to each peer that it may write to, or unread there
/// (strategies/host/peer_graph.hpp). One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "strategies/host/peer_graph.hpp"

namespace troupe::actors {

class PeerPostbox {
 public:
  PeerPostbox(strategies::WorkerId self, std::uint32_t workers) : self_(self), graph_(workers) {}

  /// A copy of `vector` for `to`, which takes the credit towards it; without credit, or memory, nothing. Copies that were read
  /// are used again.
  [[nodiscard]] Lent copy_for(strategies::WorkerId to, core::ConstSpan vector, const core::Kernels& kernels,
                              core::Allocator& allocator);
  /// `from` has read its letter: the copy is ours again, by the message that says so.
  void credit_returned(strategies::WorkerId from);

  /// The slot in which a letter lies until it is released: one that no strategy names. None for a letter that is not to be read: its
  /// writer is no member (any more), or may not write to this worker, or not yet again.
  [[nodiscard]] std::optional<strategies::Slot> receive(const PeerLetter& letter);
  /// The letter in `slot` has been read; the answer is who wrote it.
  [[nodiscard]] strategies::WorkerId released(strategies::Slot slot);
  /// Ascending; until told, everyone is a member. Copies for those who are none any more are given up.
  void members(const std::vector<strategies::WorkerId>& workers);

  /// Letters that have not been released, by slot.
  [[nodiscard]] const std::map<strategies::Slot, PeerLetter>& unread() const noexcept { return inbox_; }
  /// Letters so far, to and from each peer that there were any; ascending.
  [[nodiscard]] std::vector<LetterCount> sent() const;
  [[nodiscard]] std::vector<LetterCount> received() const;
  /// So many have come from each of them, members only: what others wrote is not waited for.
  [[nodiscard]] bool has(const std::vector<LetterCount>& expected) const;

  void clear();

 private:
  [[nodiscard]] bool is_member(strategies::WorkerId worker) const;

  strategies::WorkerId self_;
  strategies::PeerGraph graph_;
  std::optional<std::vector<strategies::WorkerId>> members_;
  std::map<strategies::WorkerId, std::shared_ptr<core::Buffer>> away_;  // copies on their way, or unread there
  std::vector<std::shared_ptr<core::Buffer>> free_;
  std::map<strategies::Slot, PeerLetter> inbox_;
  std::map<strategies::WorkerId, std::uint64_t> sent_;
  std::map<strategies::WorkerId, std::uint64_t> received_;
};

}  // namespace troupe::actors
