/// The range of virtual time and conversions into it. A time beyond the range ends a forecast with an error (OutOfTime) instead of
/// wrapping around. Pure functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <exception>

#include "core/clock.hpp"

namespace troupe::sim {

using core::Duration;

/// 73 years. Three of these fit into 64 bits of nanoseconds, so times can be added before they are checked.
inline constexpr Duration kEndOfTime{std::int64_t{1} << 61};

/// An event would be after the end of time. Simulation::run() returns Errc::config for it.
class OutOfTime final : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "virtual time passes its range of 73 years"; }
};

/// Rounded; at most the end of time.
[[nodiscard]] inline Duration nanoseconds(double ns) noexcept {
  return Duration{std::llround(std::min(ns, static_cast<double>(kEndOfTime.count())))};
}
[[nodiscard]] inline Duration seconds(double s) noexcept { return nanoseconds(1e9 * s); }

/// REQUIRES that neither is after the end of time. Throws OutOfTime when the sum is.
[[nodiscard]] inline Duration later(Duration at, Duration by) {
  const auto sum = at + by;
  if (sum > kEndOfTime) throw OutOfTime();
  return sum;
}

}  // namespace troupe::sim
