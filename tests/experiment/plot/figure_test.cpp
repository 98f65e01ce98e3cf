#include "experiment/plot/figure.hpp"

#include <cmath>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::plot {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(LiteralTest, GnuplotReadsItUnchanged) {
  EXPECT_EQ(literal("it's 5 % of_all\nof them"), "'it''s 5 % of_all of them'");
}

TEST(SeriesStyleTest, NoTwoOfManySeriesLookAlike) {
  std::set<std::string> styles;
  for (std::size_t series = 0; series < 28; ++series) styles.insert(series_style(series));
  EXPECT_EQ(styles.size(), 28u);
  EXPECT_THAT(series_style(0), Not(HasSubstr(" dt ")));
}

TEST(ColumnsTest, WideCharactersTakeTwo) {
  EXPECT_EQ(columns_of("easgd τ=4"), 9u);
  EXPECT_EQ(columns_of("実験-1"), 6u);
  EXPECT_EQ(columns_of("🚀"), 2u);
}

TEST(DecadeTicsTest, ShortRangesHaveThreeInADecade) {
  EXPECT_EQ(decade_tics(0.003, 2.4), "('0.001' 0.001, '0.01' 0.01, '0.1' 0.1, '1' 1, '10' 10)");
  EXPECT_EQ(decade_tics(0.2, 3), "('0.1' 0.1, '0.2' 0.2, '0.5' 0.5, '1' 1, '2' 2, '5' 5, '10' 10, '20' 20, '50' 50)");
  EXPECT_EQ(decade_tics(1e-12, 100),
            "('1e-12' 1e-12, '1e-10' 1e-10, '1e-08' 1e-08, '1e-06' 1e-06, '0.0001' 0.0001, "
            "'0.01' 0.01, '1' 1, '100' 100)");
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

TEST(HeatMapTest, AScaleFromZeroShowsSmallWaitsAsSmall) {
  HeatMap map{"m", "title", "across", "down", "unit", {"1", "2"}, {"a"}, {{8, 10}}, "{:.1f}", true};
  EXPECT_THAT(draw(map).script, HasSubstr("set cbrange [0:10]"));
  map.from_zero = false;
  EXPECT_THAT(draw(map).script, HasSubstr("set cbrange [8:10]"));
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

TEST(LineChartTest, AConstantIsDashedAndHasNoPoints) {
  const auto script =
      draw(LineChart{"c", "t", "x", "y", {"1", "2"}, {}, false, {{"bsp (has no tau)", {5, 5}, {0, 0}, true}}}).script;
  EXPECT_THAT(script, HasSubstr("with lines" + series_dashed(0) + " title 'bsp (has no tau)'"));
  EXPECT_THAT(script, Not(HasSubstr("yerrorbars")));
}

TEST(ValueChartTest, HasAValueWithItsDeviationPerPlace) {
  ValueChart chart{"v", "t", "x", "y", {"bsp", "easgd", "ssp"}, {10, 20, NAN}, {0, 2, NAN}, "{:.1f}", true};
  auto figure = draw(chart);
  EXPECT_EQ(figure.data.at("v.dat"), "0 10 0 29362\n1 20 2 15113984\n");  // 0x0072B2, 0xE69F00
  EXPECT_THAT(figure.script, HasSubstr("set label '20.0 ± 2.0' at 1,22"));
  EXPECT_THAT(figure.script, HasSubstr("set label '10.0' at 0,10"));
  EXPECT_THAT(figure.script, HasSubstr("set yrange [0:"));
  EXPECT_THAT(figure.script, HasSubstr("with boxes"));
  chart.bars = false;  // the differences of accuracies are small beside them
  figure = draw(chart);
  EXPECT_THAT(figure.script, Not(HasSubstr("set yrange [0:")));
  EXPECT_THAT(figure.script, HasSubstr("with points"));
}

}  // namespace
}  // namespace troupe::plot
