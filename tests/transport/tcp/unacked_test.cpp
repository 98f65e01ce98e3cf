#include "transport/tcp/protocol/unacked.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace troupe::transport {
namespace {

Outgoing frame(FrameType type, std::uint64_t message) { return {.frame = {.type = type, .message = message}}; }

/// Five frames: four are written, three of them have left.
UnackedFrames five() {
  UnackedFrames frames;
  for (std::uint64_t i = 1; i <= 5; ++i)
    EXPECT_EQ(frames.add(frame(i == 2 ? FrameType::done : FrameType::offer, i)), i);
  for (std::uint64_t i = 1; i <= 4; ++i) EXPECT_EQ(frames.say().frame.message, i);
  for (int i = 0; i < 3; ++i) frames.left();
  return frames;
}

TEST(UnackedFrames, NewConnectionContinuesAfterTheFramesThatThePeerHas) {
  // The peer's count, and its effects: the changes (+ has left after all, - must leave again), and the next frame to write.
  const struct {
    std::uint64_t count;
    std::vector<int> changes;
    std::uint64_t next;
  } cases[] = {{0, {-3, -2, -1}, 1}, {2, {-3}, 3}, {3, {}, 4}, {4, {+4}, 5}};
  for (const auto& c : cases) {
    UnackedFrames frames = five();
    std::vector<int> changes;
    ASSERT_TRUE(frames.resume(c.count, [&](const Outgoing& o, bool left) {
      changes.push_back(left ? static_cast<int>(o.frame.message) : -static_cast<int>(o.frame.message));
    }));
    EXPECT_EQ(changes, c.changes);
    EXPECT_EQ(frames.acknowledged(), c.count);
    for (std::uint64_t i = c.next; i <= 5; ++i) {
      ASSERT_TRUE(frames.has_more());
      EXPECT_EQ(frames.say().frame.message, i);
    }
    EXPECT_FALSE(frames.has_more());
  }
}

TEST(UnackedFrames, CountsThatGoBackOrBeyondTheSentFramesAreRefused) {
  UnackedFrames frames = five();
  EXPECT_EQ(frames.acknowledge(4).error().code, core::Errc::corrupt);
  EXPECT_TRUE(frames.acknowledge(2));
  EXPECT_EQ(frames.ends_acknowledged(), 1u);
  EXPECT_EQ(frames.acknowledge(1).error().code, core::Errc::corrupt);
  const auto ignore = [](const Outgoing&, bool) { FAIL(); };
  EXPECT_EQ(frames.resume(1, ignore).error().code, core::Errc::corrupt);
  EXPECT_EQ(frames.resume(5, ignore).error().code, core::Errc::corrupt);
  EXPECT_TRUE(frames.acknowledge(3));
}

}  // namespace
}  // namespace troupe::transport
