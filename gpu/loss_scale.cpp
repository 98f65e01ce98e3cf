#include "gpu/loss_scale.hpp"

#include <algorithm>

namespace troupe::gpu {
namespace {

// The exponent is stored plus one in the upper half, the count in the lower one.
constexpr unsigned kHalf = 32;

}  // namespace

void LossScale::good() noexcept {
  if (++good_in_a_row_ < kGoodSteps) return;
  good_in_a_row_ = 0;
  exponent_ = std::min(exponent_ + 1, kMost);
}

bool LossScale::fall() noexcept {
  good_in_a_row_ = 0;
  if (exponent_ == 0) return false;
  --exponent_;
  return true;
}

std::uint64_t LossScale::state() const noexcept { return std::uint64_t{exponent_ + 1} << kHalf | good_in_a_row_; }

void LossScale::set_state(std::uint64_t state) noexcept {
  const auto exponent = state >> kHalf;
  const auto good = state & 0xffff'ffff;
  if (exponent < 1 || exponent > kMost + 1 || good >= kGoodSteps) return;
  exponent_ = static_cast<std::uint32_t>(exponent - 1);
  good_in_a_row_ = static_cast<std::uint32_t>(good);
}

}  // namespace troupe::gpu
