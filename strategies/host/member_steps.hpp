/// Where the hosts of a session stand: steps that each has completed or passed over, in one count that all of them share.
///
/// A host counts from where it began: a founding member from the step at which the checkpoint's members go on, or from 0 where
/// members join anew (WorkerState::discarded); a newcomer from newcomer_step(). What earlier sessions did is in no host's count.
/// In step, step n of every member has its share of the n-th round of leases: two members that count differently would wait for
/// each other's exchanges for ever, or give up leases that nobody trains on.
#pragma once

#include <span>
#include <vector>

#include "strategies/host/types.hpp"

namespace troupe::strategies {

/// The step at which a newcomer begins, of where the members stand while training stands still. In step they all stand at one step,
/// which is the newcomer's. On demand it begins with the least of them. Without members: 0.
[[nodiscard]] Step newcomer_step(bool in_step, std::span<const Step> members) noexcept;

/// The coordinator's account of it, from what workers report. Plain value; one thread.
class MemberSteps {
 public:
  /// `first`: by rank, where the founding members' hosts begin.
  explicit MemberSteps(std::vector<Step> first) : first_(std::move(first)), ended_(first_.size(), 0) {}

  /// Since its host began, `worker` has completed or passed over so many steps.
  void ended(WorkerId worker, Step steps) { ended_.at(worker) = steps; }
  /// A new host begins there in the place of `worker`.
  void joined(WorkerId worker, Step first);
  [[nodiscard]] Step of(WorkerId worker) const { return first_.at(worker) + ended_.at(worker); }
  [[nodiscard]] std::vector<Step> all() const;
  /// newcomer_step() of `members`.
  [[nodiscard]] Step of_newcomer(bool in_step, std::span<const WorkerId> members) const;

 private:
  std::vector<Step> first_;
  std::vector<Step> ended_;
};

}  // namespace troupe::strategies
