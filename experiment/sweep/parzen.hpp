/// A Parzen estimate of the density of points in a Space: a mixture of a prior and one kernel per observed point, all of equal weight
/// (Bergstra et al. 2011, "Algorithms for Hyper-Parameter Optimization", section 4). A kernel is a product over the parameters, as in
/// Falkner et al. 2018 (BOHB), so that the estimate knows which values go together:
///
/// - real and whole numbers: a Gaussian around the observed position in [0, 1], truncated to [0, 1], of deviation 0.2 n^(-1 / (d + 4)) (Scott
///   1992 for n points in d dimensions), and at least 1 / min(100, n + 2); the prior's is a Gaussian of deviation 1 around 0.5;
/// - choices: probability 1/K of each in the prior; a kernel of n has (1 + w) / (1 + K w) for the observed one and w / (1 + K w) for each
///   other, w = 1 / (n + 1);
/// - a parameter that the observed point does not have: as in the prior.
///
/// Densities are with respect to [0, 1] for real numbers and are probabilities for whole numbers and choices. Values; pure.
#pragma once

#include <span>
#include <vector>

#include "core/random.hpp"
#include "experiment/sweep/space.hpp"

namespace troupe::sweep {

class Parzen {
 public:
  /// `space` outlives the estimate. `observed`: points of it; may be empty.
  Parzen(const Space& space, std::vector<Point> observed);

  [[nodiscard]] double log_density(const Point& point) const;
  /// Of one parameter alone, over the points that have it: the value's density.
  [[nodiscard]] double marginal(std::size_t parameter, double value) const;
  [[nodiscard]] Point sample(core::Random& random) const;
  [[nodiscard]] double deviation() const noexcept { return deviation_; }

 private:
  /// `kernel` < observed_.size(), or the prior.
  [[nodiscard]] double factor(std::size_t kernel, std::size_t parameter, double value) const;
  [[nodiscard]] double sample(std::size_t kernel, std::size_t parameter, core::Random& random) const;
  [[nodiscard]] const std::optional<double>* center(std::size_t kernel, std::size_t parameter) const;

  const Space& space_;
  std::vector<Point> observed_;
  double deviation_;  // of the Gaussians around observed points
};

}  // namespace troupe::sweep
