#include "service/runs/thinning.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::service {
namespace {

/// Twice the area of the triangle.
double area(const CurvePoint& a, const CurvePoint& b, double x, double y) {
  return std::abs((a[0] - x) * (b[3] - a[3]) - (a[0] - b[0]) * (y - a[3]));
}

}  // namespace

std::vector<CurvePoint> thinned(const std::vector<CurvePoint>& points, std::size_t most) {
  if (points.size() <= most || most < 3) return points;
  std::vector<CurvePoint> kept{points.front()};
  const double width = static_cast<double>(points.size() - 2) / static_cast<double>(most - 2);
  const auto begin_of = [&](std::size_t part) {
    return std::min(points.size() - 1, 1 + static_cast<std::size_t>(std::floor(static_cast<double>(part) * width)));
  };
  for (std::size_t part = 0; part + 2 < most; ++part) {
    const auto begin = begin_of(part), end = begin_of(part + 1);
    const auto next_end = std::max(end + 1, std::min(points.size(), begin_of(part + 2)));
    double x = 0, y = 0;  // the middle of the next part
    for (auto i = end; i < next_end; ++i) {
      x += points[i][0];
      y += points[i][3];
    }
    const auto count = static_cast<double>(next_end - end);
    auto best = begin;
    for (auto i = begin; i < end; ++i)
      if (area(kept.back(), points[i], x / count, y / count) > area(kept.back(), points[best], x / count, y / count))
        best = i;
    kept.push_back(points[best]);
  }
  kept.push_back(points.back());
  return kept;
}

}  // namespace troupe::service
