/// Letters between workers, one worker's side: whom it may write to, the copies on their way, and the slots in
/// which letters lie until they have been read. A worker has one letter on its way to each peer, or unread there. One thread.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "actors/messages.hpp"

namespace troupe::actors {

class PeerPostbox {
 public:
  /// A copy of `vector` for `to`, which takes the credit towards it; without credit, or memory, nothing. Copies that were read
  /// are used again.
  [[nodiscard]] Lent copy_for(strategies::WorkerId to, core::ConstSpan vector, const core::Kernels& kernels,
                              core::Allocator& allocator);
  /// `from` has read its letter: the copy is ours again, by the message that says so.
  void credit_returned(strategies::WorkerId from);

  /// The slot in which a letter lies until it is released: one that no strategy names.
  [[nodiscard]] strategies::Slot receive(const PeerLetter& letter);
  /// The letter in `slot` has been read; the answer is who wrote it.
  [[nodiscard]] strategies::WorkerId released(strategies::Slot slot);

  /// Letters that have not been released, by slot.
  [[nodiscard]] const std::map<strategies::Slot, PeerLetter>& unread() const noexcept { return inbox_; }

  void clear();

 private:
  std::map<strategies::WorkerId, std::shared_ptr<core::Buffer>> away_;  // copies on their way, or unread there
  std::vector<std::shared_ptr<core::Buffer>> free_;
  std::map<strategies::Slot, PeerLetter> inbox_;
};

}  // namespace troupe::actors
