#include "core/text/layout.hpp"

#include <gtest/gtest.h>

namespace troupe::core {
namespace {

TEST(Layout, BreaksAtBlanksWithinTheWidth) {
  EXPECT_EQ(wrapped("one two three", 20, 2, 0), "one two three");
  EXPECT_EQ(wrapped("one two three", 8, 2, 0), "one two\n  three");
  EXPECT_EQ(wrapped("one two three", 8, 2, 4), "one\n  two\n  three");  // four columns are used already
  EXPECT_EQ(wrapped("≥≥≥ ≥≥≥", 7, 0, 0), "≥≥≥ ≥≥≥");                    // columns, not bytes
  EXPECT_EQ(wrapped("a longlonglong b", 6, 0, 0), "a\nlonglonglong\nb");
  EXPECT_EQ(wrapped("", 6, 0, 0), "");
}

TEST(Layout, RowHasTwoColumns) {
  EXPECT_EQ(list_row("lr = 0.01", "learning rate", 14, 40), "  lr = 0.01   learning rate\n");
  EXPECT_EQ(list_row("lr = 0.01", "learning rate", 14, 24), "  lr = 0.01   learning\n              rate\n");
  EXPECT_EQ(list_row("a_long_name = 1", "said below", 10, 40), "  a_long_name = 1\n          said below\n");
  EXPECT_EQ(list_row("alone", "", 10, 40), "  alone\n");
}

TEST(Layout, NumbersAreReadable) {
  EXPECT_EQ(readable(1), "1");
  EXPECT_EQ(readable(9999), "9999");
  EXPECT_EQ(readable(65'535), "65,535");
  EXPECT_EQ(readable(1e9), "1,000,000,000");
  EXPECT_EQ(readable(-1e6), "-1,000,000");
  EXPECT_EQ(readable(0.5), "0.5");
  EXPECT_EQ(readable(1e-6), "0.000001");
  EXPECT_EQ(readable(0.999999), "0.999999");
  EXPECT_EQ(readable(1e30), "1e30");
  EXPECT_EQ(readable(1e-30), "1e-30");
  EXPECT_EQ(readable(1.5), "1.5");
}

}  // namespace
}  // namespace troupe::core
