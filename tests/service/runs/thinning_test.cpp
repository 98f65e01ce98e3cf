#include "service/runs/thinning.hpp"

#include <algorithm>

#include <rapidcheck/gtest.h>

namespace troupe::service {
namespace {

std::vector<CurvePoint> line_of(std::size_t size) {
  std::vector<CurvePoint> points;
  for (std::size_t i = 0; i < size; ++i) points.push_back({static_cast<double>(i), 0, 0, 1});
  return points;
}

TEST(ThinningTest, AShortCurveStaysAsItIs) { EXPECT_EQ(thinned(line_of(10), 10), line_of(10)); }

TEST(ThinningTest, APeakStays) {
  auto points = line_of(10'000);
  points[6'789][3] = 100;
  const auto few = thinned(points, 50);
  EXPECT_EQ(few.size(), 50U);
  EXPECT_NE(std::ranges::find(few, points[6'789]), few.end());
}

RC_GTEST_PROP(ThinningProperty, PointsAreOfTheCurveInOrderWithBothEnds, ()) {
  const auto size = *rc::gen::inRange<std::size_t>(3, 500);
  const auto most = *rc::gen::inRange<std::size_t>(3, 500);
  auto points = line_of(size);
  for (auto& point : points) point[3] = *rc::gen::inRange(-1000, 1000);
  const auto few = thinned(points, most);
  RC_ASSERT(few.size() == std::min(size, most));
  RC_ASSERT(few.front() == points.front() && few.back() == points.back());
  for (std::size_t i = 0; i < few.size(); ++i) {
    RC_ASSERT(points[static_cast<std::size_t>(few[i][0])] == few[i]);
    if (i > 0) RC_ASSERT(few[i - 1][0] < few[i][0]);
  }
}

}  // namespace
}  // namespace troupe::service
