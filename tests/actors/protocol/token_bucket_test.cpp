#include "actors/protocol/token_bucket.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

int taken(TokenBucket& bucket, core::Duration now, int asked) {
  int given = 0;
  for (int k = 0; k < asked; ++k) given += bucket.take(now) ? 1 : 0;
  return given;
}

TEST(TokenBucket, GivesSoManyAtOnceAndNoMore) {
  TokenBucket bucket(100, 10);
  EXPECT_EQ(taken(bucket, milliseconds(5), 1000), 100);
}

TEST(TokenBucket, GivesAsManyASecondAsAreAskedForInTime) {
  TokenBucket bucket(20, 10);
  for (int k = 0; k < 1000; ++k) EXPECT_EQ(taken(bucket, k * milliseconds(100), 1), 1) << k;
}

/// A gap for each line would double the lines.
TEST(TokenBucket, IsThereAgainOnlyAfterASecond) {
  TokenBucket bucket(100, 10);
  EXPECT_EQ(taken(bucket, milliseconds(0), 101), 100);
  for (int k = 1; k < 10; ++k) EXPECT_EQ(taken(bucket, k * milliseconds(100), 50), 0) << k;
  EXPECT_EQ(taken(bucket, milliseconds(1000), 50), 10);
  EXPECT_EQ(taken(bucket, milliseconds(1900), 50), 0);
}

TEST(TokenBucket, DoesNotGrowBeyondWhatIsGivenAtOnce) {
  TokenBucket bucket(100, 10);
  EXPECT_EQ(taken(bucket, milliseconds(0), 60), 60);
  EXPECT_EQ(taken(bucket, std::chrono::hours(1), 1000), 100);
}

}  // namespace
}  // namespace troupe::actors
