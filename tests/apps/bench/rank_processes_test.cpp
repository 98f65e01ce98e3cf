#include "apps/bench/rank_processes.hpp"

#include <chrono>
#include <csignal>

#include <gtest/gtest.h>

namespace troupe::transport {
namespace {

constexpr core::Duration kPatience = std::chrono::minutes{1};

TEST(RankProcesses, EveryRankReceivesFromEveryRank) {
  RankProcesses processes;
  ASSERT_TRUE(processes.start(3, [](std::size_t rank, RankLine& line) -> core::Result<void> {
    (void)line.say("I am " + std::to_string(rank));
    std::string all;
    for (int i = 0; i < 3; ++i) all += line.receive(kPatience).value() + ";";
    return line.say(all);
  }));
  const auto lines = processes.gather(kPatience).value();
  EXPECT_EQ(lines, (std::vector<std::string>{"I am 0", "I am 1", "I am 2"}));
  ASSERT_TRUE(processes.spread(lines));
  EXPECT_EQ(processes.gather(kPatience).value(), std::vector<std::string>(3, "I am 0;I am 1;I am 2;"));
}

TEST(RankProcesses, AnErrorIsReportedWithItsRank) {
  RankProcesses processes;
  ASSERT_TRUE(processes.start(2, [](std::size_t rank, RankLine& line) -> core::Result<void> {
    if (rank == 1) return core::fail(core::Errc::no_space, "too much");
    return line.say("fine");
  }));
  EXPECT_EQ(processes.gather(kPatience).error().message, "rank 1: too much");
}

TEST(RankProcesses, ARankThatDiesIsReportedLost) {
  RankProcesses processes;
  ASSERT_TRUE(processes.start(2, [](std::size_t rank, RankLine& line) -> core::Result<void> {
    if (rank == 0) std::raise(SIGKILL);
    return line.say("fine");
  }));
  const auto lines = processes.gather(kPatience);
  ASSERT_FALSE(lines);
  EXPECT_EQ(lines.error().code, core::Errc::peer_lost);
  EXPECT_TRUE(lines.error().message.starts_with("rank 0: ")) << lines.error().message;
}

}  // namespace
}  // namespace troupe::transport
