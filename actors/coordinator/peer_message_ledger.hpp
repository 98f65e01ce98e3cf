/// Peer messages between workers, as the workers count them while training is paused: whether all have arrived, and whether the shares of
/// the model add up. Only decides; the coordinator sends the requests. Not thread-safe.
///
/// Each worker counts the peer messages that it has sent to each peer and received from each. Counts only grow, and no worker sends while
/// training is paused: when both ends of every pair of members report the same count, no peer message is in transit. Peer messages to or
/// from a lost worker, or between two workers that have lost each other, are not awaited.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "core/error.hpp"

namespace troupe::actors {

class PeerMessageLedger {
 public:
  using WorkerId = strategies::WorkerId;

  /// The counts that `worker` reports; the newest replace earlier ones.
  void heard(WorkerId worker, PeerMessageCounts peer_messages) {
    said_.insert_or_assign(worker, std::move(peer_messages));
  }
  /// A worker is no member any more: its share, and peer messages in transit to it, are lost.
  void lost(WorkerId worker);
  /// Two members have lost each other: peer messages between them are lost from now on.
  void disconnected(WorkerId one, WorkerId other);

  /// The peer messages that `reader` must wait for, by the writers' reports so far.
  [[nodiscard]] std::vector<PeerMessageCount> expected_by(WorkerId reader) const;
  /// A pair (writer, reader) of reported workers with a peer message in transit; none: all have arrived.
  [[nodiscard]] std::optional<std::pair<WorkerId, WorkerId>> under_way() const;
  /// Number of peer messages that have arrived so far: grows while something moves.
  [[nodiscard]] std::uint64_t arrived() const;
  [[nodiscard]] const PeerMessageCounts& of(WorkerId worker) const { return said_.at(worker); }

  /// Σ a over the workers that have reported and their unread peer messages.
  [[nodiscard]] double weight() const;
  /// REQUIRES reports of all members, and no peer message in transit. Σ a is 1 less what was lost. Errc::internal if Σ a has changed
  /// without a loss, or has grown. Shares are whole multiples of 2⁻⁵²: the comparison is exact.
  [[nodiscard]] core::Result<void> balance();

 private:
  [[nodiscard]] bool reach_each_other(WorkerId one, WorkerId other) const;

  std::map<WorkerId, PeerMessageCounts> said_;            // of members
  std::set<std::pair<WorkerId, WorkerId>> disconnected_;  // the lower one first
  std::optional<double> sum_;                             // of the latest balance
  bool any_lost_ = false;                                 // since the latest balance
};

}  // namespace troupe::actors
