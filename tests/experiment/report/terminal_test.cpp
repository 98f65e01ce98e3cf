#include "experiment/report/terminal.hpp"

#include <gtest/gtest.h>

#include "tests/experiment/report/screen.hpp"

namespace troupe::report {
namespace {

using Lines = std::vector<std::string>;

std::vector<StyledLine> lines(std::initializer_list<const char*> texts) {
  std::vector<StyledLine> all;
  for (const auto* text : texts) all.emplace_back(text);
  return all;
}

TEST(StyledLineTest, IsCutAtColumnsNotBytes) {
  const StyledLine line = StyledLine("abc ").add("━━━━", Style::cyan).add(" end");
  EXPECT_EQ(line.columns(), 12u);
  EXPECT_EQ(line.render(6, false), "abc ━━");
  EXPECT_EQ(line.render(100, false), "abc ━━━━ end");
  EXPECT_EQ(line.render(0, false), "");
}

TEST(StyledLineTest, ColourOnlyWhenAskedAndAlwaysReset) {
  const StyledLine line = StyledLine("a").add("b", Style::red);
  EXPECT_EQ(line.render(10, true), "a\x1b[31mb\x1b[0m");
  EXPECT_EQ(line.render(1, true), "a");
  EXPECT_EQ(line.render(10, false), "ab");
}

TEST(LiveRegionTest, DrawsOverItself) {
  Capture out;
  LiveRegion region(out.stream(), false);
  region.draw(lines({"one 1", "two 1"}));
  region.draw(lines({"one 2", "two 2"}));
  EXPECT_EQ(Screen(out.text()).shown(), (Lines{"one 2", "two 2"}));
  region.draw(lines({"only"}));
  EXPECT_EQ(Screen(out.text()).shown(), (Lines{"only"}));
}

TEST(LiveRegionTest, PrintedLinesStayAbove) {
  Capture out;
  LiveRegion region(out.stream(), false);
  region.print(StyledLine("before"));
  region.draw(lines({"one", "two"}));
  region.print(StyledLine("note"));
  EXPECT_EQ(Screen(out.text()).shown(), (Lines{"before", "note", "one", "two"}));
  region.draw(lines({"ONE", "TWO"}));
  EXPECT_EQ(Screen(out.text()).shown(), (Lines{"before", "note", "ONE", "TWO"}));
}

TEST(LiveRegionTest, HidesTheCursorOnlyWhileItDraws) {
  Capture out;
  {
    LiveRegion region(out.stream(), false);
    EXPECT_TRUE(Screen(out.text()).cursor_visible);
    region.draw(lines({"one"}));
    EXPECT_FALSE(Screen(out.text()).cursor_visible);
  }
  const Screen screen(out.text());
  EXPECT_TRUE(screen.cursor_visible);
  EXPECT_EQ(screen.shown(), Lines{});
}

TEST(LiveRegionTest, NeverWraps) {
  Capture out;  // no terminal: 80 columns
  LiveRegion region(out.stream(), false);
  region.draw({StyledLine(std::string(200, 'x'))});
  EXPECT_EQ(Screen(out.text()).shown(), (Lines{std::string(79, 'x')}));
}

TEST(LiveRegionTest, NeverHigherThanTheTerminal) {
  Capture out;  // 24 rows
  LiveRegion region(out.stream(), false);
  std::vector<StyledLine> many;
  for (int i = 0; i < 100; ++i) many.emplace_back(std::to_string(i));
  region.draw(many);
  const auto shown = Screen(out.text()).shown();
  EXPECT_EQ(shown.size(), 23u);
  EXPECT_EQ(shown.back(), "99");
}

}  // namespace
}  // namespace troupe::report
