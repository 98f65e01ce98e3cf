#include "experiment/bad_updates.hpp"

#include <bit>
#include <string_view>

#include <fmt/format.h>

namespace troupe::experiment {

core::Result<GuardedStep> guarded_step(nn::Replica& replica, const core::Kernels& kernels, float limit,
                                       const nn::Batch& batch, const std::function<void(int)>& on_bucket_ready) {
  GuardedStep step;
  const auto look = [&](int bucket) {
    const auto& range = replica.buckets()[static_cast<std::size_t>(bucket)];
    const auto gradient = replica.gradients().subspan(range.offset, range.count);
    if (!kernels.all_within(gradient, limit)) {
      kernels.fill(gradient, 0);
      step.refused = true;
    }
    if (on_bucket_ready) on_bucket_ready(bucket);
  };
  auto result = replica.step(batch, look);
  if (!result) return tl::unexpected(std::move(result.error()));
  step.result = *result;
  return step;
}

bool BadUpdates::worth_a_warning() const noexcept { return std::has_single_bit(in_a_row_); }

std::string BadUpdates::text() const {
  return fmt::format("{} in a row; train.max_bad_updates = {} end the run", in_a_row_, most_);
}

namespace {

constexpr std::string_view kBadNumbers = "held numbers that are not finite, or too large to be of use";

}  // namespace

std::string bad_loss(std::uint32_t worker, std::uint64_t step, double loss) {
  return fmt::format("worker {}, step {}: the loss is {}: training diverged", worker, step, loss);
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
