/// The digits that GlyphDataset draws, as pen strokes. Troupe's own drawings, with several ways to write each digit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::data {

struct Point {
  float x = 0;
  float y = 0;  // downwards
};

/// One continuous pen movement: a start, then cubic Bézier curves of three more points each (two handles and an end), so
/// points.size() % 3 == 1. A straight line is a curve with its handles on it.
struct Stroke {
  std::vector<Point> points;  // in a box of 100 x 100; ink stays within about [18, 84] x [6, 96]
};

/// One way to write a digit.
struct GlyphShape {
  std::vector<Stroke> strokes;
};

inline constexpr std::int32_t kGlyphClasses = 10;

/// The shapes of `digit` in [0, 10): at least two. Parsed once; thread-safe.
[[nodiscard]] std::span<const GlyphShape> glyph_shapes(std::int32_t digit);

}  // namespace troupe::data
