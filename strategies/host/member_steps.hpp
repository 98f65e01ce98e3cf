/// The steps that each host of a session has completed or passed over, in one count that all hosts share.
///
/// A host counts from its start: an initial member from the step at which the checkpoint's members continue, or from 0 where
/// members join anew (WorkerState::discarded); a newcomer from newcomer_step(). No host counts steps of earlier sessions. In step,
/// step n of every member is its share of the n-th round of leases. Two members with different counts would wait for each other's
/// exchanges for ever, or give up leases on which no worker trains.
#pragma once

#include <span>
#include <vector>

#include "strategies/host/types.hpp"

namespace troupe::strategies {

/// The step at which a newcomer begins, from the steps of the members while training is paused. In step all members are at one
/// step, which is the newcomer's too. On demand the newcomer begins at the lowest of them. Without members: 0.
[[nodiscard]] Step newcomer_step(bool in_step, std::span<const Step> members) noexcept;

/// The coordinator's copy of these counts, from the workers' reports. Plain value; one thread.
class MemberSteps {
 public:
  /// `first`: by rank, the step at which the initial member's host begins.
  explicit MemberSteps(std::vector<Step> first) : first_(std::move(first)), ended_(first_.size(), 0) {}

  /// `worker` has completed or passed over this many steps since its host began.
  void ended(WorkerId worker, Step steps) { ended_.at(worker) = steps; }
  /// A new host replaces `worker` and begins at step `first`.
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
