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

TEST(StyledLineTest, LosesWholeFieldsFromItsEnd) {
  const auto line =
      StyledLine("worker 0").field("  step 30").field("  loss ").add("0.0431", Style::red).field("  12/s");
  EXPECT_EQ(line.fitted(100).render(100, false), "worker 0  step 30  loss 0.0431  12/s");
  EXPECT_EQ(line.fitted(35).render(100, false), "worker 0  step 30  loss 0.0431");
  EXPECT_EQ(line.fitted(30).render(100, false), "worker 0  step 30  loss 0.0431");
  EXPECT_EQ(line.fitted(29).render(100, false), "worker 0  step 30") << "both pieces of the field";
  EXPECT_EQ(line.fitted(3).render(100, false), "worker 0") << "the first field stays";
}

TEST(StyledLineTest, IsBrokenBetweenFields) {
  const auto line = StyledLine("demo: easgd").field(", lenet").field(", 2 workers").field("  going on");
  const auto texts = [&](std::size_t columns) {
    Lines all;
    for (const auto& part : line.wrapped(columns)) all.push_back(part.render(100, false));
    return all;
  };
  EXPECT_EQ(texts(100), (Lines{"demo: easgd, lenet, 2 workers  going on"}));
  EXPECT_EQ(texts(21), (Lines{"demo: easgd, lenet,", "  2 workers  going on"}));
  EXPECT_EQ(texts(4), (Lines{"demo: easgd,", "  lenet,", "  2 workers", "  going on"}));
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

/// A region as high as the screen begins in its top row. There a terminal may copy what is cleared to its history.
TEST(LiveRegionTest, OnlyPermanentLinesReachTheHistory) {
  Capture out;  // 24 rows
  LiveRegion region(out.stream(), false);
  std::vector<StyledLine> all;
  for (int i = 0; i < 40; ++i) all.emplace_back("line " + std::to_string(i));
  for (int frame = 0; frame < 50; ++frame) {
    if (frame == 20) region.print(StyledLine("note"));
    if (frame % 10 == 9) all.resize(all.size() - 7);  // also when it gets shorter than the screen
    region.draw(all);
  }
  region.draw(lines({"last"}));
  const Screen screen(out.text(), 24);
  EXPECT_EQ(screen.history(), (Lines{"note"}));
  EXPECT_EQ(screen.shown(), (Lines{"note", "last"}));
  region.close();
  EXPECT_EQ(Screen(out.text(), 24).shown(), (Lines{"note"}));
}

TEST(LiveRegionTest, ALongPermanentLineLeavesNothingOfTheRegionBesideIt) {
  Capture out;
  LiveRegion region(out.stream(), false);
  region.draw({StyledLine(std::string(60, 'x')), StyledLine("two")});
  region.print(StyledLine("short"));
  EXPECT_EQ(Screen(out.text()).shown(), (Lines{"short", std::string(60, 'x'), "two"}));
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

TEST(LiveRegionTest, DropsWholeFieldsThatDoNotFit) {
  Capture out;  // no terminal: 80 columns
  LiveRegion region(out.stream(), false);
  region.draw({StyledLine(std::string(70, 'x')).field("  a field too long")});
  EXPECT_EQ(Screen(out.text()).shown(), (Lines{std::string(70, 'x')}));
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
