#include "guest/lines.hpp"

#include <gtest/gtest.h>

namespace troupe::guest {
namespace {

TEST(GuestLines, TextOfAnyLanguageStays) {
  for (const auto* text : {"", "a\tb", "grün", "損失 0.5", "\xf0\x9f\x99\x82", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(printable(text), text);
}

TEST(GuestLines, ControlSequencesDoNot) {
  EXPECT_EQ(printable("\x1b[2Jx\x7f\x01"), "?[2Jx??");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "31m"),
            "a??31m");  // U+009B begins one, too
  EXPECT_EQ(printable(std::string_view("\0", 1)), "?");
}

TEST(GuestLines, NorDoBytesThatAreNoText) {
  EXPECT_EQ(printable("\xff\xfe"), "??");
  EXPECT_EQ(printable("\xc3"), "?");         // cut
  EXPECT_EQ(printable("\xe2\x82x"), "??x");  // cut by another character
  EXPECT_EQ(printable("\xc0\xaf"), "??");    // longer than it needs to be
  EXPECT_EQ(printable("\xe0\x80\xaf"), "???");
  EXPECT_EQ(printable("\xed\xa0\x80"), "???");       // half a pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "????");  // above U+10FFFF
}

TEST(GuestLines, TheLastLinesAreOne) {
  EXPECT_EQ(last_lines_of("a\nb\n\nc\x1b\n", 2), "b | c?");
  EXPECT_EQ(last_lines_of("a", 2), "a");
  EXPECT_EQ(last_lines_of("", 2), "");
}

}  // namespace
}  // namespace troupe::guest
