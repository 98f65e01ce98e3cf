#include "experiment/sweep/tpe.hpp"

#include <algorithm>
#include <cmath>

#include "experiment/sweep/parzen.hpp"

namespace troupe::sweep {
namespace {

constexpr std::uint64_t kShift = std::uint64_t{1}
                                 << 63;  // the stream of the even spread's start; others are points' indices
constexpr int kTries = 1000;

bool is_known(const History& history, const Point& point) {
  return std::ranges::find(history.ranked, point) != history.ranked.end() ||
         std::ranges::find(history.pending, point) != history.pending.end();
}

/// `point`, or a random one that is not known; where none can be found, `point`.
Point fresh(const Space& space, const History& history, Point point, core::Random& random) {
  Point other = point;
  for (int tries = 0; tries < kTries; ++tries) {
    if (!is_known(history, other)) return other;
    other = space.random(random);
  }
  return point;
}

/// The real root above 1 of x^(d + 1) = x + 1.
double golden_ratio(std::size_t dimensions) {
  double x = 2;
  constexpr int kEnough = 64;
  for (int i = 0; i < kEnough; ++i) x = std::pow(1 + x, 1 / (static_cast<double>(dimensions) + 1));
  return x;
}

}  // namespace

std::size_t good_count(const TpeOptions& options, std::size_t count) {
  const auto good = static_cast<std::size_t>(std::ceil(options.good * static_cast<double>(count)));
  return std::min(std::max<std::size_t>(good, 1), count);
}

Point spread(const Space& space, std::uint64_t seed, std::uint64_t index) {
  const double ratio = golden_ratio(space.size());
  core::Random shifts(seed, core::Purpose::sweep, kShift);
  double step = 1;
  return space.point([&](std::size_t) {
    step /= ratio;
    const double u = shifts.uniform() + static_cast<double>(index + 1) * step;
    return u - std::floor(u);
  });
}

Point suggest_random(const Space& space, const History& history, std::uint64_t seed, std::uint64_t index) {
  core::Random random(seed, core::Purpose::sweep, index);
  return fresh(space, history, space.random(random), random);
}

Point suggest(const Space& space, const History& history, const TpeOptions& options, std::uint64_t seed,
              std::uint64_t index) {
  core::Random random(seed, core::Purpose::sweep, index);
  if (index < options.start || history.ranked.empty()) return fresh(space, history, spread(space, seed, index), random);
  const auto good = good_count(options, history.ranked.size());
  const auto best = history.ranked.first(good), rest = history.ranked.subspan(good);
  std::vector<Point> others(rest.begin(), rest.end());
  others.insert(others.end(), history.pending.begin(), history.pending.end());
  const Parzen l(space, {best.begin(), best.end()}), g(space, std::move(others));

  std::optional<Point> chosen;
  double greatest = 0;
  for (std::size_t i = 0; i < options.candidates; ++i) {
    auto candidate = l.sample(random);
    if (is_known(history, candidate)) continue;
    const double gain = l.log_density(candidate) - g.log_density(candidate);
    if (chosen && !(gain > greatest)) continue;
    greatest = gain;
    chosen = std::move(candidate);
  }
  return chosen ? *chosen : fresh(space, history, history.ranked.front(), random);
}

}  // namespace troupe::sweep
