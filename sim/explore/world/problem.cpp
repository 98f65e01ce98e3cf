#include "sim/explore/world/problem.hpp"

#include "core/random.hpp"

namespace troupe::explore {
namespace {

constexpr std::uint64_t kShape = ~std::uint64_t{0};  // no lease has this index
constexpr std::uint64_t kStart = kShape - 1;

}  // namespace

QuadraticProblem::QuadraticProblem(std::uint64_t seed, std::size_t size, double noise) : seed_(seed), noise_(noise) {
  core::Random random{seed, core::Purpose::test, kShape};
  for (std::size_t i = 0; i < size; ++i) {
    steepness_.push_back(static_cast<float>(random.uniform(0.5, 1.5)));
    target_.push_back(static_cast<float>(random.normal()));
  }
}

void QuadraticProblem::start(core::Span x) const {
  core::Random random{seed_, core::Purpose::test, kStart};
  for (float& value : x) value = static_cast<float>(4 * random.normal());
}

void QuadraticProblem::gradient(std::uint64_t lease, core::ConstSpan x, core::Span g) const {
  core::Random random{seed_, core::Purpose::test, lease};
  for (std::size_t i = 0; i < x.size(); ++i) {
    g[i] = steepness_[i] * (x[i] - target_[i]) + static_cast<float>(noise_ * random.normal());
  }
}

double QuadraticProblem::loss(core::ConstSpan x) const {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = double{x[i]} - double{target_[i]};
    sum += 0.5 * steepness_[i] * d * d;
  }
  return sum / static_cast<double>(x.size());
}

}  // namespace troupe::explore
