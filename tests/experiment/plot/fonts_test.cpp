#include "experiment/plot/fonts.hpp"

#include <gtest/gtest.h>

namespace troupe::plot {
namespace {

/// Has the characters below U+4E00: no Chinese, no emoji.
class SmallFonts final : public Fonts {
 public:
  bool have(char32_t character) override { return character < 0x4E00; }
};

TEST(FontsTest, JoinersAndSelectorsNeedNoFont) {
  SmallFonts fonts;
  EXPECT_TRUE(can_draw(fonts, "easgd τ=4 \u2764\uFE0F"));
  EXPECT_TRUE(can_draw(fonts, "a\u200Db"));
  EXPECT_FALSE(can_draw(fonts, "実験"));
}

TEST(FontsTest, LatinNeedsNoLookup) {
  InstalledFonts fonts;
  EXPECT_TRUE(fonts.have(U'a'));
  EXPECT_TRUE(fonts.have(U'é'));
  EXPECT_FALSE(fonts.have(char32_t{0x10FFFE})) << "no character at all";
}

TEST(ReplaceLabelsTest, RunsThatCannotBeNamedHaveTheirNumber) {
  SmallFonts fonts;
  std::vector<RunRecord> runs(3);
  runs[0].label = "plain";
  runs[1].label = "実験";
  runs[2].label = "🚀-run";
  const auto replaced = replace_labels(runs, fonts);
  EXPECT_EQ(runs[0].label, "plain");
  EXPECT_EQ(runs[1].label, "run 2");
  EXPECT_EQ(runs[2].label, "run 3");
  ASSERT_EQ(replaced.size(), 2u);
  EXPECT_EQ(replaced[0].name, "実験");
}

TEST(ReplaceLabelsTest, NamesOfAGridThatCannotBeDrawnAreReplaced) {
  SmallFonts fonts;
  GridRecord grid;
  grid.name = "格子";
  grid.series = {"bsp", "配置"};
  grid.keys = {{"data.path", {"here", "数据"}, {}}};
  EXPECT_EQ(replace_labels(grid, fonts).size(), 3u);
  EXPECT_EQ(shown(grid, "格子"), "grid");
  EXPECT_EQ(shown(grid, "bsp"), "bsp");
  EXPECT_EQ(shown(grid, "配置"), "configuration 2");
  EXPECT_EQ(shown(grid, "数据"), "value 2");
}

}  // namespace
}  // namespace troupe::plot
