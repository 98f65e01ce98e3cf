#include "core/text/display.hpp"

#include <gtest/gtest.h>

namespace troupe::core {
namespace {

TEST(DisplayTest, NothingThatATerminalObeysIsLeft) {
  EXPECT_EQ(printable("a\x1b[2Jb\r\n\tc\x7f"), "a [2Jb   c ");
  EXPECT_EQ(printable("a\xC2\x9B"
                      "b"),
            "a b")
      << "U+009B begins a control sequence, too";
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b"),
            "ab")
      << "right-to-left override";
}

TEST(DisplayTest, BytesThatAreNoUtf8AreReplacedOneByOne) {
  EXPECT_EQ(printable("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(printable("\xE4\xB8"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "cut off";
  EXPECT_EQ(printable("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD") << "an overlong slash";
  EXPECT_EQ(printable("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") << "a surrogate";
  EXPECT_EQ(printable("größe 文字 🎭"), "größe 文字 🎭");
}

TEST(DisplayTest, WideCharactersTakeTwoColumnsAndCombiningOnesNone) {
  EXPECT_EQ(display_columns("abc"), 3U);
  EXPECT_EQ(display_columns("größe"), 5U);
  EXPECT_EQ(display_columns("文字"), 4U);
  EXPECT_EQ(display_columns("e\xCC\x81"), 1U) << "e with a combining acute";
  EXPECT_EQ(display_columns("🎭"), 2U);
}

TEST(DisplayTest, ACutDividesNoCharacter) {
  EXPECT_EQ(display_cut("文字", 4), "文字");
  EXPECT_EQ(display_cut("文字", 3), "文");
  EXPECT_EQ(display_cut("文字", 1), "");
  EXPECT_EQ(display_cut("ae\xCC\x81z", 2), "ae\xCC\x81");
  EXPECT_EQ(display_cut("abc", 0), "");
}

}  // namespace
}  // namespace troupe::core
