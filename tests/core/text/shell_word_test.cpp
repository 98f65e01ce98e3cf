#include "core/text/shell_word.hpp"

#include <gtest/gtest.h>

namespace troupe::core {
namespace {

TEST(ShellWord, PlainWordsStayAsTheyAre) {
  for (const auto* word : {"runs/20260102-030405-mnist-bsp", "a_b.c=1:2,3@4%5+6"}) EXPECT_EQ(shell_word(word), word);
}

TEST(ShellWord, OthersAreQuoted) {
  EXPECT_EQ(shell_word("b c"), "'b c'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("~/runs"), "'~/runs'");
  EXPECT_EQ(shell_word("é"), "'é'");
}

}  // namespace
}  // namespace troupe::core
