// The ranks' threads and their messages: what happens when one cannot go on.
#include "cpu/neurons/team.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>

#include <gtest/gtest.h>

#include "cpu/neurons/communicator.hpp"

namespace troupe::cpu::testing {
namespace {

using std::chrono_literals::operator""ms;
constexpr std::size_t kRanks = 3;
constexpr core::Duration kLong = std::chrono::minutes{2};  // only a hang takes so long

struct Ranks {
  explicit Ranks(core::Duration deadline = kLong) : communicators(Communicator::connect(kRanks, deadline).value()) {}

  /// All ranks' numbers; `rank` gives its own.
  void gather(std::size_t rank) {
    auto& own = numbers[rank];
    own[rank] = static_cast<float>(10 + rank);
    communicators[rank]->start_allgather(own, parts);
    communicators[rank]->finish();
  }

  std::vector<std::unique_ptr<Communicator>> communicators;
  std::array<std::array<float, kRanks>, kRanks> numbers{};
  std::vector<core::Slice> parts{{0, 1}, {1, 1}, {2, 1}};
};

TEST(NeuronTeam, RunsEveryRankOnceInEachRun) {
  Ranks ranks;
  Team team(kRanks, [&](std::size_t rank) { ranks.communicators[rank]->abandon(); });
  for (int run = 0; run < 100; ++run) {
    ranks.numbers = {};
    team.run([&](std::size_t rank) { ranks.gather(rank); });
    for (const auto& numbers : ranks.numbers) ASSERT_EQ(numbers, (std::array<float, kRanks>{10, 11, 12}));
  }
}

TEST(NeuronTeam, OneRankThatThrowsEndsTheWaitsOfTheOthers) {
  for (std::size_t thrower = 0; thrower < kRanks; ++thrower) {
    Ranks ranks;
    Team team(kRanks, [&](std::size_t rank) { ranks.communicators[rank]->abandon(); });
    std::atomic<int> lost{0};
    try {
      team.run([&](std::size_t rank) {
        if (rank == thrower) throw std::out_of_range("no memory");
        try {
          ranks.gather(rank);
        } catch (const CommunicationFailed& failed) {
          EXPECT_EQ(failed.error().code, core::Errc::peer_lost);
          ++lost;
          throw;
        }
      });
      ADD_FAILURE() << "nothing thrown";
    } catch (const std::out_of_range& thrown) {
      EXPECT_STREQ(thrown.what(), "no memory");
    }
    EXPECT_EQ(lost, static_cast<int>(kRanks) - 1);
  }
}

TEST(NeuronTeam, RankThatThrowsWhileItsValuesAreLentTakesThemBack) {
  Ranks ranks;
  Team team(kRanks, [&](std::size_t rank) { ranks.communicators[rank]->abandon(); });
  EXPECT_THROW(team.run([&](std::size_t rank) {
    if (rank != 1) return ranks.gather(rank);
    std::vector<float> gone(kRanks);
    ranks.communicators[rank]->start_allgather(gone, ranks.parts);
    ranks.communicators[rank]->abandon();
    throw std::out_of_range("after it was lent");
  }),
               std::exception);
}

TEST(NeuronCommunicator, WaitEndsAtItsDeadline) {
  Ranks ranks(50ms);
  try {
    ranks.gather(1);  // the others never come
    FAIL() << "nothing thrown";
  } catch (const CommunicationFailed& failed) {
    EXPECT_EQ(failed.error().code, core::Errc::timeout);
    EXPECT_EQ(failed.error().message, "rank 1 of a neuron-parallel replica waited 0.05 s for the others");
  }
}

TEST(NeuronCommunicator, OneRankHasNothingToExchange) {
  auto alone = Communicator::connect(1, kLong).value();
  std::array<float, 2> numbers{1, 2};
  const std::vector<core::Slice> part{{0, 2}};
  alone[0]->start_allgather(numbers, part);
  alone[0]->finish();
  alone[0]->start_reduce_scatter(numbers, part, 1);
  alone[0]->finish();
  EXPECT_EQ(numbers, (std::array<float, 2>{1, 2}));
}

}  // namespace
}  // namespace troupe::cpu::testing
