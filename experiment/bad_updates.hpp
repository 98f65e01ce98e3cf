/// What becomes of numbers that training has no use for: NaN, infinity, and what is beyond core::kLargestUsable. A gradient that holds
/// one is not applied, a push that holds one changes no centre; both are counted, and a member with too many in a row ends the run
/// (train.max_bad_updates). Decided by the numbers alone, so a replay decides alike.
///
/// Cost: one read of each gradient, a bucket at a time as soon as backward has written it, and one of what is pushed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/kernels.hpp"
#include "nn/backend.hpp"

namespace troupe::experiment {

/// A step whose gradient is looked at before anybody else sees it.
struct GuardedStep {
  nn::StepResult result;
  bool refused = false;  // some of the gradient's buckets held a number that cannot be used: they are zeros now
};

/// Replica::step(), but that a bucket with a number beyond `limit` becomes zeros before `on_bucket_ready` is told of it.
[[nodiscard]] core::Result<GuardedStep> guarded_step(nn::Replica& replica, const core::Kernels& kernels, float limit,
                                                     const nn::Batch& batch,
                                                     const std::function<void(int)>& on_bucket_ready);

/// How many of one member's updates in a row were bad.
class BadUpdates {
 public:
  explicit BadUpdates(std::int64_t most) noexcept : most_(static_cast<std::uint64_t>(most)) {}
  void good() noexcept { in_a_row_ = 0; }
  void bad() noexcept { ++in_a_row_; }
  [[nodiscard]] bool too_many() const noexcept { return in_a_row_ >= most_; }
  /// The first, the second, the fourth…: so that a warning does not become a flood.
  [[nodiscard]] bool worth_a_warning() const noexcept;
  /// "3 in a row; train.max_bad_updates = 10 end the run".
  [[nodiscard]] std::string text() const;

 private:
  std::uint64_t most_;
  std::uint64_t in_a_row_ = 0;
};

/// "worker 1, step 7: its gradient …", "worker 1: its push to shard 0 …".
[[nodiscard]] std::string bad_gradient(std::uint32_t worker, std::uint64_t step, const BadUpdates& so_far);
[[nodiscard]] std::string bad_push(std::uint32_t worker, std::uint32_t shard, const BadUpdates& so_far);

}  // namespace troupe::experiment
