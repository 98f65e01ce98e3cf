/// The tree-structured Parzen estimator (Bergstra et al. 2011): of some candidates drawn from the density l of the best points, the one with
/// the greatest l(x) / g(x), where g is the density of all others. That is the greatest expected improvement. Pure: the same arguments give
/// the same point.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experiment/sweep/space.hpp"

namespace troupe::sweep {

struct TpeOptions {
  std::size_t start = 6;        ///< points that are spread evenly before the model decides
  double good = 0.15;           ///< the share of points that l is made of
  std::size_t candidates = 48;  ///< drawn from l
};

/// What is known when a point is asked for.
struct History {
  std::span<const Point> ranked;   ///< with a result, best first
  std::span<const Point> pending;  ///< without one yet: g has them, too, so that points asked for together differ
};

/// The number of points that l is made of: the share, rounded up, of `count`.
[[nodiscard]] std::size_t good_count(const TpeOptions& options, std::size_t count);

/// The point number `index` of a sweep. No point of the history, if the space has others. `seed` keys the random numbers.
[[nodiscard]] Point suggest(const Space& space, const History& history, const TpeOptions& options, std::uint64_t seed,
                            std::uint64_t index);

/// The same by chance alone: independent and uniform.
[[nodiscard]] Point suggest_random(const Space& space, const History& history, std::uint64_t seed, std::uint64_t index);

/// The point number `index` of an additive recurrence (Roberts 2018: the generalised golden ratio) with a random start: any number of points
/// after each other cover the space more evenly than independent ones.
[[nodiscard]] Point spread(const Space& space, std::uint64_t seed, std::uint64_t index);

}  // namespace troupe::sweep
