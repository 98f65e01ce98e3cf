#include "experiment/bad_updates.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace troupe::experiment {

core::Result<GuardedStep> guarded_step(nn::Replica& replica, const core::Kernels& kernels, float limit,
                                       const nn::Batch& batch, const std::function<void(int)>& on_bucket_ready) {
  GuardedStep step;
  double squares = 0;                               // in the order of the buckets: the same in every run
  const bool hidden = replica.gradients().empty();  // the replica's own optimizer has used them
  const auto look = [&](int bucket) {
    if (hidden) {
      if (on_bucket_ready) on_bucket_ready(bucket);
      return;
    }
    const auto& range = replica.buckets()[static_cast<std::size_t>(bucket)];
    const auto gradient = replica.gradients().subspan(range.offset, range.count);
    // No square is larger than the sum of all, also as it is rounded: a small sum says that every number is usable. NaN is not small.
    double square = kernels.squared_norm(gradient);
    if (!(square <= static_cast<double>(limit) * static_cast<double>(limit)) && !kernels.all_within(gradient, limit)) {
      kernels.fill(gradient, 0);
      step.refused = true;
      square = 0;
    }
    squares += square;
    if (on_bucket_ready) on_bucket_ready(bucket);
  };
  auto result = replica.step(batch, look);
  if (!result) return tl::unexpected(std::move(result.error()));
  step.result = *result;
  step.gradient_norm = std::sqrt(squares);
  return step;
}

bool BadUpdates::worth_a_warning() const noexcept { return std::has_single_bit(in_a_row_); }

std::string BadUpdates::text() const {
  return fmt::format("{} in a row; train.max_bad_updates = {} end the run", in_a_row_, most_);
}

namespace {

constexpr std::string_view kBadNumbers = "held numbers that are not finite, or too large to be of use";

}  // namespace

bool LossWatch::diverged(std::uint64_t step, double loss) noexcept {
  const bool bad = !std::isfinite(loss) || (seen_ == kLongest && loss > kMostGrowth * std::max(first_, 1.0));
  if (seen_ < kLongest && !bad) first_ += (loss - first_) / ++seen_;
  if (!bad) {
    in_a_row_ = 0;
    return false;
  }
  if (in_a_row_++ == 0 || !std::isfinite(loss)) since_ = step;
  loss_ = loss;
  return !std::isfinite(loss) || in_a_row_ == kLongest;
}

std::string LossWatch::text(std::uint32_t worker) const {
  const auto what = std::isnan(loss_)   ? std::string("not a number")  // a NaN has a sign, which means nothing
                    : std::isinf(loss_) ? std::string("infinite")
                                        : fmt::format("{:.3g}", loss_);
  return fmt::format("worker {}: diverged: the loss is {} since step {}{}", worker, what, since_,
                     std::isfinite(loss_) ? fmt::format(", and was {:.3g} at first", first_) : "");
}

std::string against_divergence(double lr, bool of_program) {
  return of_program ? "; try a smaller learning rate in the program"
                    : fmt::format("; try a smaller train.lr (it is {})", lr);
}

std::string bad_gradient(std::uint32_t worker, std::uint64_t step, const BadUpdates& so_far) {
  return fmt::format("worker {}, step {}: its gradient {}, and was not applied ({})", worker, step, kBadNumbers,
                     so_far.text());
}

std::string bad_push(std::uint32_t worker, std::uint32_t shard, const BadUpdates& so_far) {
  return fmt::format("worker {}: what it pushed to shard {} {}, and was refused ({})", worker, shard, kBadNumbers,
                     so_far.text());
}

}  // namespace troupe::experiment
