/// Who may write to whom where a strategy's workers write to each other (Needs::peers). A pure function of the number of workers: every
/// implementation of PeerPort has the same, and nobody has to be told.
///
/// A letter that is not read yet lies in a slot of its reader, of which there are kPeerSlots. Each slot is one writer's, who has one
/// letter on its way to that reader or unread there, and no other until it has been read. So a reader never has more letters than slots,
/// however slow it is and however many write, and memory for them is bounded.
///
/// Up to kPeerSlots + 1 workers everyone may write to everyone. Of N more than that, worker i may write to i + d (mod N) for kPeerSlots
/// distances d, which are drawn once for N and the same for all: each worker has as many readers as writers, and no worker is favoured. 1
/// is always among the distances, so that what one worker knows can reach all others; the others are random, so that it does so in few
/// steps. Workers that are lost leave the rest as it is.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/host/types.hpp"

namespace troupe::strategies {

/// staged(kFirstPeerSlot) and those after it are the port's, for letters. A strategy names those before (Needs::worker_slots).
inline constexpr std::uint8_t kFirstPeerSlot = 64;
inline constexpr std::uint32_t kPeerSlots = 256 - kFirstPeerSlot;

/// Immutable. One bit per worker.
class PeerGraph {
 public:
  /// `writers`: that a worker has at most, from 1.
  explicit PeerGraph(std::uint32_t workers, std::uint32_t writers = kPeerSlots);

  /// Both are among the workers that the graph was made for; nobody writes to itself.
  [[nodiscard]] bool may_write(WorkerId from, WorkerId to) const noexcept;

 private:
  std::uint32_t workers_;
  std::vector<bool> distances_;  // from writer to reader; empty: every one
};

}  // namespace troupe::strategies
