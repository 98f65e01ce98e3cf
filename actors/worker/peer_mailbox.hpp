/// Peer messages between workers, one worker's side: its readers, its copies in transit, the slots of unread messages, and the counts in
/// both directions. A worker has at most one message to each reader that is in transit or unread (strategies/host/peer_graph.hpp).
/// One thread. Memory: at most one copy per reader.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "strategies/host/peer_graph.hpp"

namespace troupe::actors {

class PeerMailbox {
 public:
  PeerMailbox(strategies::WorkerId self, std::uint32_t workers) : self_(self), graph_(workers) {}

  /// A copy of `vector` for `to`; takes the credit for `to`. Empty without credit or memory. Reuses copies that have been read.
  [[nodiscard]] BorrowedView copy_for(strategies::WorkerId to, core::ConstSpan vector, const core::Kernels& kernels,
                                      core::Allocator& allocator);
  /// `from` has read its message: its copy can be reused.
  void credit_returned(strategies::WorkerId from);

  /// The slot for a received message until it is released; no strategy names such a slot. None: the message must be dropped, because its
  /// writer is not a member, may not write to this worker, or already has an unread message here.
  [[nodiscard]] std::optional<strategies::Slot> receive(const PeerMessage& peer_message);
  /// The message in `slot` has been read. Returns its writer.
  [[nodiscard]] strategies::WorkerId released(strategies::Slot slot);
  /// `workers`: ascending. Before the first call every worker is a member. Drops the copies for workers that are not members.
  void members(const std::vector<strategies::WorkerId>& workers);

  /// Messages that have not been released, by slot.
  [[nodiscard]] const std::map<strategies::Slot, PeerMessage>& unread() const noexcept { return inbox_; }
  /// Number of messages so far, by peer, ascending; without peers that have none.
  [[nodiscard]] std::vector<PeerMessageCount> sent() const;
  [[nodiscard]] std::vector<PeerMessageCount> received() const;
  /// True when at least these numbers have arrived. Entries of peers that are not members are ignored.
  [[nodiscard]] bool has(const std::vector<PeerMessageCount>& expected) const;

  void clear();

 private:
  [[nodiscard]] bool is_member(strategies::WorkerId worker) const;

  strategies::WorkerId self_;
  strategies::PeerGraph graph_;
  std::optional<std::vector<strategies::WorkerId>> members_;
  std::map<strategies::WorkerId, std::shared_ptr<core::Buffer>> away_;  // copies in transit or unread, by reader
  std::vector<std::shared_ptr<core::Buffer>> free_;
  std::map<strategies::Slot, PeerMessage> inbox_;
  std::map<strategies::WorkerId, std::uint64_t> sent_;
  std::map<strategies::WorkerId, std::uint64_t> received_;
};

}  // namespace troupe::actors
