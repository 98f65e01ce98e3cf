/// What workers have written to each other, as they say it while training stands still: whether all of it has arrived, and whether the
/// shares of the model are all there. Decides only; who asks is the coordinator. One thread.
///
/// Each worker counts the letters that it has sent to each peer and received from each. Counts only grow, and nobody sends while
/// training stands still: when the two ends of every pair of members say the same, nothing is on its way. What is on its way to or from
/// a worker that is lost, or between two that have lost each other, is not waited for.
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

class LetterLedger {
 public:
  using WorkerId = strategies::WorkerId;

  /// What `worker` says; the newest counts.
  void heard(WorkerId worker, Letters letters) { said_.insert_or_assign(worker, std::move(letters)); }
  /// A worker is no member any more: its share, and what was on its way to it, is lost.
  void lost(WorkerId worker);
  /// Two members do not reach each other any more: what one writes to the other from now on is lost.
  void parted(WorkerId one, WorkerId other);

  /// As far as writers have said: what `reader` is to wait for.
  [[nodiscard]] std::vector<LetterCount> expected_by(WorkerId reader) const;
  /// A letter that is on its way between two who have been heard, by writer and reader; none: all have arrived.
  [[nodiscard]] std::optional<std::pair<WorkerId, WorkerId>> under_way() const;
  /// Letters that have arrived so far: grows as long as something moves.
  [[nodiscard]] std::uint64_t arrived() const;
  [[nodiscard]] const Letters& of(WorkerId worker) const { return said_.at(worker); }

  /// Σ a over those who have been heard, and the letters that they have not read.
  [[nodiscard]] double weight() const;
  /// When all have been heard and nothing is under way: Σ a is 1 less what was lost. Errc::internal when it has changed although nobody
  /// was lost, or has grown. Shares are whole multiples of 2⁻⁵²: equal means equal.
  [[nodiscard]] core::Result<void> balance();

 private:
  [[nodiscard]] bool reach_each_other(WorkerId one, WorkerId other) const;

  std::map<WorkerId, Letters> said_;                // of members
  std::set<std::pair<WorkerId, WorkerId>> parted_;  // the lower one first
  std::optional<double> sum_;                       // of the latest balance
  bool any_lost_ = false;                           // since then
};

}  // namespace troupe::actors
