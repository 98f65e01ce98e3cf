#include "sim/cluster/cluster.hpp"

#include <algorithm>

#include "sim/engine/virtual_time.hpp"

namespace troupe::sim {

std::int64_t PerByte::of(std::uint64_t bytes) const noexcept {
  return nanoseconds(ns * static_cast<double>(bytes)).count();
}

PerByte gbit_per_s(double rate) noexcept { return {rate > 0 ? 8 / rate : 0}; }
PerByte gb_per_s(double rate) noexcept { return {rate > 0 ? 1 / rate : 0}; }

double StepTimes::expected_ns() const noexcept {
  if (measured_ns.empty()) return mean_ns;
  double sum = 0;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < measured_ns.size(); ++i) {
    const auto end = up_to.empty() ? i + 1 : up_to[i];
    sum += measured_ns[i] * static_cast<double>(end - before);
    before = end;
  }
  return draws * sum / static_cast<double>(measured());
}

double StepTimes::measured(std::uint64_t nth) const noexcept {
  if (up_to.empty()) return measured_ns[nth];
  return measured_ns[static_cast<std::size_t>(std::upper_bound(up_to.begin(), up_to.end(), nth) - up_to.begin())];
}

}  // namespace troupe::sim
