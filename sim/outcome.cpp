#include "sim/outcome.hpp"

namespace troupe::sim {

std::uint64_t Outcome::samples() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& worker : workers) sum += worker.samples;
  return sum;
}

double Outcome::images_per_s() const noexcept {
  return trained.count() > 0 ? static_cast<double>(samples()) / core::seconds(trained) : 0;
}

}  // namespace troupe::sim
