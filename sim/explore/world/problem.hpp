/// A training problem: the quadratic f(x) = ½ Σ h (x − t)², with noise on its gradient. The gradient is a pure function of (seed, lease,
/// x), independent of the worker.
#pragma once

#include <cstdint>
#include <vector>

#include "core/kernels.hpp"

namespace troupe::explore {

class QuadraticProblem {
 public:
  QuadraticProblem(std::uint64_t seed, std::size_t size, double noise);
  void start(core::Span x) const;                                             ///< the same parameters for all workers
  void gradient(std::uint64_t lease, core::ConstSpan x, core::Span g) const;  ///< g = h (x − t) + noise(lease)
  [[nodiscard]] double loss(core::ConstSpan x) const;                         ///< f(x) / size

 private:
  std::uint64_t seed_;
  double noise_;
  std::vector<float> steepness_;  // h, in [0.5, 1.5)
  std::vector<float> target_;     // t
};

}  // namespace troupe::explore
