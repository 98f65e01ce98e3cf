/// Fewer points of a curve that looks the same. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace troupe::service {

/// [epoch, seconds, samples, value]
using CurvePoint = std::array<double, 4>;

/// At most `most` (≥ 3) points: the first, the last, and of each part between them the one that spans the largest triangle with its
/// neighbours (Steinarsson 2013, "Downsampling time series for visual representation": largest-triangle-three-buckets), over epochs. So peaks
/// stay.
[[nodiscard]] std::vector<CurvePoint> thinned(const std::vector<CurvePoint>& points, std::size_t most);

}  // namespace troupe::service
