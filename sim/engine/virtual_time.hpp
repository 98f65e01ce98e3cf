/// The range of virtual time, and how numbers get into it: what is out of all proportion ends a forecast with an error (OutOfTime)
/// instead of wrapping around. Pure functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <exception>

#include "core/clock.hpp"

namespace troupe::sim {

using core::Duration;

/// 73 years: three of these still fit into 64 bits of nanoseconds, so that times can be added before they are looked at.
inline constexpr Duration kEndOfTime{std::int64_t{1} << 61};

/// Something would happen after the end of time. Simulation::run() makes it an Errc::config.
class OutOfTime final : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "virtual time passes its range of 73 years"; }
};

/// Rounded; the end of time for what is longer.
[[nodiscard]] inline Duration nanoseconds(double ns) noexcept {
  return Duration{std::llround(std::min(ns, static_cast<double>(kEndOfTime.count())))};
}
[[nodiscard]] inline Duration seconds(double s) noexcept { return nanoseconds(1e9 * s); }

/// Neither of them is after the end of time. Throws OutOfTime when their sum is.
[[nodiscard]] inline Duration later(Duration at, Duration by) {
  const auto sum = at + by;
  if (sum > kEndOfTime) throw OutOfTime();
  return sum;
}

}  // namespace troupe::sim
