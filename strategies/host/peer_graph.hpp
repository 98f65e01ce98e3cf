/// Which worker may write to which, for strategies whose workers write to each other (Needs::peers). A pure function of the number
/// of workers: every implementation of PeerPort computes the same graph, without messages.
///
/// An unread peer message lies in a slot of its reader, which has kPeerSlots of them. Each slot belongs to one writer. That writer
/// has at most one peer message in flight to this reader or unread there; the next one needs the slot to be read first. So a reader
/// never has more peer messages than slots, for any speed and any number of writers, and their memory is bounded.
///
/// With up to kPeerSlots + 1 workers every worker may write to every other. With N above that, worker i may write to i + d (mod N)
/// for kPeerSlots distances d. They are drawn once for N and are the same for all workers: each worker has as many readers as
/// writers. Distance 1 is always included, so that information from one worker can reach all others; the other distances are
/// random, so that it does so in few steps. A lost worker does not change the graph.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/host/types.hpp"

namespace troupe::strategies {

/// The port uses staged(kFirstPeerSlot) and the slots after it for peer messages. A strategy uses the slots before
/// (Needs::worker_slots).
inline constexpr std::uint8_t kFirstPeerSlot = 64;
inline constexpr std::uint32_t kPeerSlots = 256 - kFirstPeerSlot;

/// Immutable. One bit per worker.
class PeerGraph {
 public:
  /// `writers`: the largest number of writers of one worker, at least 1.
  explicit PeerGraph(std::uint32_t workers, std::uint32_t writers = kPeerSlots);

  /// REQUIRES both below the graph's number of workers. False for from == to.
  [[nodiscard]] bool may_write(WorkerId from, WorkerId to) const noexcept;

 private:
  std::uint32_t workers_;
  std::vector<bool> distances_;  // from writer to reader; empty: every one
};

}  // namespace troupe::strategies
