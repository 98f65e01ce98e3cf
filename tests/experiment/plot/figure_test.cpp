#include "experiment/plot/figure.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::plot {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(LiteralTest, GnuplotReadsItUnchanged) {
  EXPECT_EQ(literal("it's 5 % of_all\nof them"), "'it''s 5 % of_all of them'");
}

TEST(SeriesStyleTest, SeriesDifferInColourAndPoint) {
  EXPECT_NE(series_style(0), series_style(1));
  EXPECT_THAT(series_style(0, true), HasSubstr(" dt "));
  EXPECT_THAT(series_style(0), Not(HasSubstr(" dt ")));
}

TEST(LegendTest, GrowsWithItsRows) {
  const auto one = legend_below({"a", "b"}, 1000, 600);
  const auto many = legend_below(std::vector<std::string>(8, std::string(40, 'x')), 1000, 600);
  EXPECT_THAT(one.key, HasSubstr("maxcols 2 "));
  EXPECT_THAT(many.key, HasSubstr("maxcols 2 "));               // 9 · 40 + 70 = 430 pixels each
  EXPECT_NEAR(many.bottom - one.bottom, 3 * 25.0 / 600, 1e-9);  // 4 rows instead of 1
}

TEST(HeatMapTest, HasACellPerValueAndItsText) {
  HeatMap map{"m", "title", "across", "down", "unit", {"1", "2"}, {"a", "b"}, {{0, 10}, {NAN, 5}}, "{:.1f}"};
  const auto figure = draw(map);
  EXPECT_EQ(figure.data.at("m.dat"), "0 0 0\n1 0 10\n\n0 1 NaN\n1 1 5\n\n");
  EXPECT_THAT(figure.script, HasSubstr("set label '10.0' at 1,0 center front textcolor rgb 'black'"));
  EXPECT_THAT(figure.script, HasSubstr("set label '0.0' at 0,0 center front textcolor rgb 'white'"));
  EXPECT_THAT(figure.script, Not(HasSubstr("nan")));
  EXPECT_THAT(figure.script, HasSubstr("set cbrange [0:10]"));
}

TEST(LineChartTest, HasABlockPerLineAndOmitsMissingValues) {
  LineChart chart{"c", "t", "x", "y", {"1", "2", "4"}, {1, 2, 4}, false, {{"one", {5, NAN, 7}, {0.5, NAN, 0}}}};
  const auto figure = draw(chart);
  EXPECT_EQ(figure.data.at("c.dat"), "1 5 0.5\n4 7 0\n\n\n");
  EXPECT_THAT(figure.script, HasSubstr("set xtics ('1' 1, '2' 2, '4' 4)"));
  EXPECT_THAT(figure.script, Not(HasSubstr("logscale")));
  chart.logarithmic = true;
  EXPECT_THAT(draw(chart).script, HasSubstr("set logscale x"));
}

TEST(BarChartTest, HasARowPerPlace) {
  const auto figure = draw(BarChart{"b", "t", "x", "y", {"0", "1–3"}, {"w0", "w1"}, {{10, 90}, {20, 80}}});
  EXPECT_EQ(figure.data.at("b.dat"), "\"0\" 10 20\n\"1–3\" 90 80\n");
  EXPECT_THAT(figure.script, HasSubstr("using 3:xtic(1) title 'w1'"));
}

}  // namespace
}  // namespace troupe::plot
