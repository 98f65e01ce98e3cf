#include "sim/cluster.hpp"

#include <cmath>
#include <numeric>

namespace troupe::sim {

std::int64_t PerByte::of(std::uint64_t bytes) const noexcept { return std::llround(ns * static_cast<double>(bytes)); }

PerByte gbit_per_s(double rate) noexcept { return {rate > 0 ? 8 / rate : 0}; }
PerByte gb_per_s(double rate) noexcept { return {rate > 0 ? 1 / rate : 0}; }

double StepTimes::expected_ns() const noexcept {
  if (measured_ns.empty()) return mean_ns;
  return std::accumulate(measured_ns.begin(), measured_ns.end(), 0.0) / static_cast<double>(measured_ns.size());
}

}  // namespace troupe::sim
