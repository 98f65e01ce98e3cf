/// How much each parameter decides how good a setting is: the main effects of functional ANOVA (Hutter, Hoos and Leyton-Brown 2014) on an
/// additive quadratic response surface (Box and Wilson 1951). Pure.
///
/// The model of a point's rank (0: the best, 1: the last) is a constant and, for each parameter, the Legendre polynomials of degree 1 and 2
/// of its position, or an effect for each of its choices, each of variance 1 over the space; fitted by ridge regression (penalty 1). A
/// parameter's effect is the variance of its part over the space, times the share of the space in which the parameter exists.
///
/// Why not PED-ANOVA (Watanabe et al. 2023), which compares densities of the best and of all points: points of a sweep lie where earlier ones
/// were good, and that alone makes the densities of a parameter differ (test: Importance.HoldsForThePointsThatTpeChooses).
#pragma once

#include <span>
#include <vector>

#include "experiment/sweep/space.hpp"

namespace troupe::sweep {

/// A number per parameter; they sum to 1, or all are 0 where nothing differs. `ranked`: best first. Fewer than eight points say nothing:
/// empty. Time: n · p², p = 2 or the number of choices, summed over the parameters.
[[nodiscard]] std::vector<double> importance(const Space& space, std::span<const Point> ranked);

}  // namespace troupe::sweep
