/// Bad numbers in training: NaN, infinity, and magnitudes above core::kLargestUsable. A gradient with one is not applied; a push with one
/// changes no centre. Both are counted; too many in a row at one member end the run (train.max_bad_updates). The numbers alone decide, so a
/// replay decides alike.
///
/// Cost: one read of each gradient bucket (two if its norm is above the limit), as soon as backward has written it, and one of each push.
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
  double gradient_norm = 0;  // Euclidean, of the whole gradient as it is used: before clipping
  bool refused = false;      // some buckets of the gradient held bad numbers; they are now zeros
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

/// Notices that one worker's training diverged, also while its loss is still a finite number: ReLUs that are dead, and pushes that were
/// refused, can keep it finite for the rest of the run.
class LossWatch {
 public:
  /// Looks at the loss of the next step. True: training diverged. The loss is not finite, or the last kLongest losses were all more than
  /// kMostGrowth times the mean of the first kLongest, or than kMostGrowth itself where that mean is below 1.
  [[nodiscard]] bool diverged(std::uint64_t step, double loss) noexcept;
  /// "worker 1: diverged: the loss is not a number since step 7", "… the loss is 3.1e+09 since step 7, and was 2.3 at first".
  [[nodiscard]] std::string text(std::uint32_t worker) const;

  static constexpr std::uint32_t kLongest = 16;  // steps
  static constexpr double kMostGrowth = 1000;

 private:
  std::uint32_t seen_ = 0;  // at most kLongest
  double first_ = 0;        // their mean
  std::uint32_t in_a_row_ = 0;
  std::uint64_t since_ = 0;  // the first step of them
  double loss_ = 0;          // the latest
};

/// What helps against it: "; try a smaller train.lr (it is 0.05)", and in place of that key the rate of a program of the user's.
[[nodiscard]] std::string against_divergence(double lr, bool of_program = false);
/// "worker 1, step 7: its gradient …", "worker 1: what it pushed to shard 0 …".
[[nodiscard]] std::string bad_gradient(std::uint32_t worker, std::uint64_t step, const BadUpdates& so_far);
[[nodiscard]] std::string bad_push(std::uint32_t worker, std::uint32_t shard, const BadUpdates& so_far);

}  // namespace troupe::experiment
