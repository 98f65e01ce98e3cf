#include "experiment/sweep/importance.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "experiment/sweep/parzen.hpp"

namespace troupe::sweep {
namespace {

constexpr std::size_t kFewest = 8;
constexpr std::size_t kFewestBest = 4;
constexpr std::size_t kTenth = 10;
constexpr int kIntervals = 200;

/// The points of one parameter alone: bandwidths are those of one dimension.
std::vector<Point> alone(std::span<const Point> points, std::size_t parameter) {
  std::vector<Point> values;
  for (const auto& point : points)
    if (point[parameter]) values.push_back({point[parameter]});
  return values;
}

double divergence(const Space& space, std::size_t parameter, std::span<const Point> best, std::span<const Point> all) {
  auto own = space[parameter];
  own.depends_on.reset();
  if (own.kind ==
      Kind::integer) {  // as the real numbers that are rounded to them: the same places, and smooth densities
    own.kind = Kind::real;
    own.low -= 0.5;
    own.high += 0.5;
  }
  const Space line({own});
  const Parzen p(line, alone(best, parameter)), q(line, alone(all, parameter));
  const auto part = [&](double value) {
    const double all_here = q.marginal(0, value);
    const double ratio = p.marginal(0, value) / all_here - 1;
    return ratio * ratio * all_here;
  };
  double sum = 0;
  if (own.kind == Kind::choice) {
    for (std::size_t choice = 0; choice < own.choices.size(); ++choice) sum += part(static_cast<double>(choice));
    return sum;
  }
  const double low = own.log ? std::log(own.low) : own.low, high = own.log ? std::log(own.high) : own.high;
  for (int i = 0; i < kIntervals; ++i) {  // the midpoint rule: both densities are smooth over many intervals
    const double along = low + (high - low) * (i + 0.5) / kIntervals;
    sum += part(own.log ? std::exp(along) : along) / kIntervals;
  }
  return sum;
}

}  // namespace

std::vector<double> importance(const Space& space, std::span<const Point> ranked) {
  if (ranked.size() < kFewest) return {};
  const auto best = ranked.first(std::min(std::max(kFewestBest, ranked.size() / kTenth), ranked.size() / 2));
  std::vector<double> parts;
  for (std::size_t i = 0; i < space.size(); ++i) parts.push_back(divergence(space, i, best, ranked));
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  if (sum > 0)
    for (auto& part : parts) part /= sum;
  return parts;
}

}  // namespace troupe::sweep
