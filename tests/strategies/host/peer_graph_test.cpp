// Which worker sends to which: a slot for every sender of every worker, for any number of workers, and a path from each to all.
#include "strategies/host/peer_graph.hpp"

#include <algorithm>
#include <deque>
#include <random>

#include <gtest/gtest.h>

namespace troupe::strategies {
namespace {

std::vector<WorkerId> readers_of(const PeerGraph& graph, WorkerId writer, std::uint32_t workers) {
  std::vector<WorkerId> readers;
  for (WorkerId w = 0; w < workers; ++w)
    if (graph.may_write(writer, w)) readers.push_back(w);
  return readers;
}
std::size_t writers_of(const PeerGraph& graph, WorkerId reader, std::uint32_t workers) {
  std::size_t writers = 0;
  for (WorkerId w = 0; w < workers; ++w) writers += graph.may_write(w, reader) ? 1U : 0U;
  return writers;
}

TEST(PeerGraph, EveryWorkerHasOneSlotForEachOfItsWriters) {
  for (const std::uint32_t workers : {1U, 2U, 3U, 192U, 193U, 194U, 195U, 256U, 1000U}) {
    const PeerGraph graph(workers);
    const std::size_t expected = std::min(workers - 1, kPeerSlots);
    for (WorkerId w = 0; w < workers; w += 1 + workers / 50) {
      EXPECT_EQ(writers_of(graph, w, workers), expected) << w << " of " << workers;
      EXPECT_EQ(readers_of(graph, w, workers).size(), expected) << w << " of " << workers;
      EXPECT_FALSE(graph.may_write(w, w));
    }
    EXPECT_FALSE(graph.may_write(0, workers)) << "nobody is there";
  }
}

TEST(PeerGraph, UpToTheNumberOfSlotsAllMayWriteToAll) {
  const std::uint32_t workers = kPeerSlots + 1;
  const PeerGraph graph(workers);
  for (WorkerId from = 0; from < workers; ++from)
    for (WorkerId to = 0; to < workers; ++to) ASSERT_EQ(graph.may_write(from, to), from != to);
}

/// Hops from worker 0 to the farthest worker that is reachable through `alive`, and the number of unreachable workers.
std::pair<int, std::size_t> spread(const PeerGraph& graph, const std::vector<bool>& alive) {
  const auto workers = static_cast<std::uint32_t>(alive.size());
  std::vector<int> after(workers, -1);
  std::deque<WorkerId> next{0};
  after[0] = 0;
  int farthest = 0;
  while (!next.empty()) {
    const auto writer = next.front();
    next.pop_front();
    farthest = after[writer];
    for (const auto reader : readers_of(graph, writer, workers)) {
      if (!alive[reader] || after[reader] >= 0) continue;
      after[reader] = after[writer] + 1;
      next.push_back(reader);
    }
  }
  std::size_t missed = 0;
  for (WorkerId w = 0; w < workers; ++w) missed += alive[w] && after[w] < 0 ? 1U : 0U;
  return {farthest, missed};
}

TEST(PeerGraph, NewsReachesAllWithinAFewMessagesEvenIfHalfAreLost) {
  std::mt19937 random(7);
  const std::uint32_t workers = 2000;
  const PeerGraph graph(workers);
  EXPECT_EQ(spread(graph, std::vector<bool>(workers, true)), (std::pair{2, std::size_t{0}}));
  std::vector<bool> half(workers, true);
  for (WorkerId w = 1; w < workers; ++w) half[w] = random() % 2 == 0;
  EXPECT_EQ(spread(graph, half), (std::pair{3, std::size_t{0}}));
}

TEST(PeerGraph, OneSlotMakesARing) {
  const PeerGraph graph(7, 1);
  for (WorkerId w = 0; w < 7; ++w) EXPECT_EQ(readers_of(graph, w, 7), (std::vector<WorkerId>{(w + 1) % 7}));
}

TEST(PeerGraph, EveryWorkerDrawsTheSameGraph) {
  const PeerGraph one(500), other(500);
  for (WorkerId w = 0; w < 500; ++w) EXPECT_EQ(one.may_write(0, w), other.may_write(0, w));
}

}  // namespace
}  // namespace troupe::strategies
