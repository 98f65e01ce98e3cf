#include "actors/protocol/allowance.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

int taken(Allowance& allowance, core::Duration now, int asked) {
  int given = 0;
  for (int k = 0; k < asked; ++k) given += allowance.take(now) ? 1 : 0;
  return given;
}

TEST(Allowance, GivesSoManyAtOnceAndNoMore) {
  Allowance allowance(100, 10);
  EXPECT_EQ(taken(allowance, milliseconds(5), 1000), 100);
}

TEST(Allowance, GivesAsManyASecondAsAreAskedForInTime) {
  Allowance allowance(20, 10);
  for (int k = 0; k < 1000; ++k) EXPECT_EQ(taken(allowance, k * milliseconds(100), 1), 1) << k;
}

/// A gap for each line would double the lines.
TEST(Allowance, IsThereAgainOnlyAfterASecond) {
  Allowance allowance(100, 10);
  EXPECT_EQ(taken(allowance, milliseconds(0), 101), 100);
  for (int k = 1; k < 10; ++k) EXPECT_EQ(taken(allowance, k * milliseconds(100), 50), 0) << k;
  EXPECT_EQ(taken(allowance, milliseconds(1000), 50), 10);
  EXPECT_EQ(taken(allowance, milliseconds(1900), 50), 0);
}

TEST(Allowance, DoesNotGrowBeyondWhatIsGivenAtOnce) {
  Allowance allowance(100, 10);
  EXPECT_EQ(taken(allowance, milliseconds(0), 60), 60);
  EXPECT_EQ(taken(allowance, std::chrono::hours(1), 1000), 100);
}

}  // namespace
}  // namespace troupe::actors
