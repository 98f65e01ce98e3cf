// The part of a replica's step that only fp16 has: see loss_scale.hpp.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "gpu/replica.hpp"

namespace troupe::gpu {

void GpuReplica::set_state_of_steps(std::uint64_t state) noexcept {
  if (scale_) scale_->set_state(state);
}

core::Result<void> GpuReplica::tell_scale() {
  if (!scale_) return {};
  const std::array<float, 2> factors{scale_->value(), 1 / scale_->value()};
  static_assert(offsetof(StepInput, unscale) == offsetof(StepInput, loss_scale) + sizeof(float));
  std::memcpy(scales_.data(), factors.data(),
              sizeof(factors));  // the last copy is done: every pass waits for the device
  return compute_->copy_to_device(compiled_.program.input + offsetof(StepInput, loss_scale), scales_.data(),
                                  sizeof(factors));
}

/// The gradients without the loss scale; the scratch memory then says whether they are finite.
core::Result<void> GpuReplica::unscale() {
  const core::Span gradients = compiled_.arenas.gradients.view();
  const auto count = static_cast<std::int64_t>(gradients.size());
  auto* finite = reinterpret_cast<std::int32_t*>(reinterpret_cast<std::byte*>(compiled_.update_scratch.data()) +
                                                 UpdateScratch::kFinite);
  const auto* factor = reinterpret_cast<const float*>(compiled_.program.input + offsetof(StepInput, unscale));
  if (auto ran = compute_->launch(ScaleBy{gradients.data(), factor, count}); !ran) return ran;
  if (auto ran = compute_->launch(AllWithin{gradients.data(), std::numeric_limits<float>::max(), finite, count}); !ran)
    return ran;
  return compute_->copy_to_host(reinterpret_cast<std::byte*>(sums_.data()) + graph_.heads().size() * sizeof(LossSums),
                                finite, sizeof(std::int32_t));
}

core::Result<nn::StepResult> GpuReplica::finish_scaled(const nn::Batch& batch,
                                                       const std::function<void(int)>& on_bucket_ready) {
  core::Result<nn::StepResult> result;
  while (true) {
    compute_->push_range("backward");
    auto ran = backward_.run(*compute_, captures_);
    compute_->pop_range();
    if (ran) ran = unscale();
    if (!ran) return tl::unexpected(std::move(ran.error()));
    result = finish(batch_, true);
    if (!result) return result;
    result->loss_scale = static_cast<double>(scale_->value());
    std::int32_t finite = 0;
    std::memcpy(&finite, reinterpret_cast<const std::byte*>(sums_.data()) + graph_.heads().size() * sizeof(LossSums),
                sizeof(finite));
    if (finite != 0) scale_->good();
    // A loss that is not finite comes from parameters or samples that no scale mends.
    if (finite != 0 || !std::isfinite(result->loss) || !scale_->fall()) break;
    if (auto restored = arenas_->restore_statistics(*compute_); !restored)
      return tl::unexpected(std::move(restored.error()));
    if (auto enqueued = enqueue_forward(batch, batch_, true); !enqueued)
      return tl::unexpected(std::move(enqueued.error()));
  }
  is_busy_ = true;  // until the gradients are where the caller reads them
  auto given = arenas_->after_step(*compute_, !on_bucket_ready);
  if (given && on_bucket_ready) {
    for (const auto& done : bucket_done_)
      if (auto recorded = compute_->record(*done); !recorded) return tl::unexpected(std::move(recorded.error()));
    given = give_buckets(on_bucket_ready);
  }
  if (given) given = compute_->synchronize();
  if (!given) return tl::unexpected(std::move(given.error()));
  is_busy_ = false;
  return result;
}

}  // namespace troupe::gpu
