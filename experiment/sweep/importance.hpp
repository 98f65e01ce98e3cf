/// How much each parameter decides whether a setting is among the best: PED-ANOVA (Watanabe, Bansal and Hutter 2023, "PED-ANOVA: Efficiently
/// Quantifying Hyperparameter Importance in Arbitrary Subspaces"), equation 16. Pure.
#pragma once

#include <span>
#include <vector>

#include "experiment/sweep/space.hpp"

namespace troupe::sweep {

/// For each parameter the Pearson divergence of the density of the best points' values from that of all points' values, both Parzen
/// estimates over the points that have the parameter (parzen.hpp): ∫ (p / q − 1)² q. The results sum to 1; all are 0 where nothing differs.
/// `ranked`: best first; the best tenth of them, at least four and at most half, is "best". Fewer than eight points say nothing: empty.
[[nodiscard]] std::vector<double> importance(const Space& space, std::span<const Point> ranked);

}  // namespace troupe::sweep
