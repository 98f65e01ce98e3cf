/// Bad numbers in training: NaN, infinity, and magnitudes above core::kLargestUsable. A gradient with one is not applied; a push with one
/// changes no centre. Both are counted; too many in a row at one member end the run (train.max_bad_updates). The numbers alone decide, so a
/// replay decides alike.
///
/// Cost: one read of each gradient bucket, as soon as backward has written it, and one read of each push.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/kernels.hpp"
#include "nn/backend.hpp"

namespace troupe::experiment {

/// The result of a step whose gradient was checked before any use.
struct GuardedStep {
  nn::StepResult result;
  bool refused = false;  // some buckets of the gradient held bad numbers; they are now zeros
};

/// Replica::step(); a bucket with a number beyond `limit` becomes zeros before `on_bucket_ready` receives it.
[[nodiscard]] core::Result<GuardedStep> guarded_step(nn::Replica& replica, const core::Kernels& kernels, float limit,
                                                     const nn::Batch& batch,
                                                     const std::function<void(int)>& on_bucket_ready);

/// Counts the consecutive bad updates of one member.
class BadUpdates {
 public:
  explicit BadUpdates(std::int64_t most) noexcept : most_(static_cast<std::uint64_t>(most)) {}
  void good() noexcept { in_a_row_ = 0; }
  void bad() noexcept { ++in_a_row_; }
  [[nodiscard]] bool too_many() const noexcept { return in_a_row_ >= most_; }
  /// True for the 1st, 2nd, 4th, 8th…, which limits the number of warnings.
  [[nodiscard]] bool worth_a_warning() const noexcept;
  /// "3 in a row; train.max_bad_updates = 10 end the run".
  [[nodiscard]] std::string text() const;

 private:
  std::uint64_t most_;
  std::uint64_t in_a_row_ = 0;
};

/// "worker 1, step 7: the loss is nan: training diverged".
[[nodiscard]] std::string bad_loss(std::uint32_t worker, std::uint64_t step, double loss);
/// What helps against it, where the settings are the user's to change.
inline constexpr const char* kAgainstBadLoss = "; lower train.lr or use train.warmup_epochs";
/// "worker 1, step 7: its gradient …", "worker 1: what it pushed to shard 0 …".
[[nodiscard]] std::string bad_gradient(std::uint32_t worker, std::uint64_t step, const BadUpdates& so_far);
[[nodiscard]] std::string bad_push(std::uint32_t worker, std::uint32_t shard, const BadUpdates& so_far);

}  // namespace troupe::experiment
