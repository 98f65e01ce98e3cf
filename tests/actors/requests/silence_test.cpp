#include "actors/requests/silence.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

class Silence : public ::testing::Test {
 protected:
  Silence() { deadlines_.check(now_); }
  /// A wait of 10 s. When it expires, its name is appended to expired_.
  SilenceDeadlines::Wait wait(char name, std::vector<SilenceDeadlines::Source> sources) {
    return deadlines_.begin(std::move(sources), 10s, [this, name] { expired_ += name; });
  }
  void pass(int seconds) {
    for (; seconds > 0; --seconds) deadlines_.check(now_ += 1s);
  }
  SilenceDeadlines deadlines_;
  core::Duration now_ = 1000s;
  std::string expired_;
};

TEST_F(Silence, EndsAWaitWhenItHasLastedAsLongAsTheDeadline) {
  pass(5);
  wait('a', {1});
  pass(9);
  EXPECT_EQ(expired_, "");
  pass(1);
  EXPECT_EQ(expired_, "a");
  pass(100);
  EXPECT_EQ(expired_, "a");
}

TEST_F(Silence, TransferThatMovesMeetsNoDeadline) {
  wait('a', {1, 2});
  for (int k = 0; k < 1000; ++k) {
    pass(9);
    deadlines_.moved(k % 2 == 0 ? 1 : 2);
  }
  EXPECT_EQ(expired_, "");
  pass(10);
  EXPECT_EQ(expired_, "a");
}

TEST_F(Silence, MovementOfAnotherSourceDoesNotProlongAWait) {
  wait('a', {1});
  wait('b', {2});
  for (int k = 0; k < 3; ++k) {
    pass(5);
    deadlines_.moved(2);
  }
  EXPECT_EQ(expired_, "a");
  pass(10);
  EXPECT_EQ(expired_, "ab");
}

TEST_F(Silence, TimeWithoutAnyCheckDoesNotCount) {
  wait('a', {1});
  pass(5);
  deadlines_.check(now_ += 3600s);  // as if the process had been stopped
  EXPECT_EQ(expired_, "");
  pass(3);
  EXPECT_EQ(expired_, "a");
}

TEST_F(Silence, EndedWaitDoesNotExpire) {
  const auto answered = wait('a', {1});
  EXPECT_TRUE(deadlines_.end(answered));
  EXPECT_FALSE(deadlines_.end(answered));
  const auto late = wait('b', {1});
  pass(10);
  EXPECT_EQ(expired_, "b");
  EXPECT_FALSE(deadlines_.end(late));
}

// An expiring wait may end others, because their member is lost with it, and begin new ones.
TEST_F(Silence, ExpiringWaitMayEndAndBeginOthers) {
  SilenceDeadlines::Wait other{};
  deadlines_.begin({1}, 10s, [&] {
    expired_ += 'a';
    EXPECT_TRUE(deadlines_.end(other));
    wait('c', {1});
  });
  other = wait('b', {1});
  pass(10);
  EXPECT_EQ(expired_, "a");
  pass(10);
  EXPECT_EQ(expired_, "ac");
}

}  // namespace
}  // namespace troupe::actors
