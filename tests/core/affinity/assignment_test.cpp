#include "core/affinity/assignment.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/core/affinity/machines.hpp"

namespace troupe::core {
namespace {

Cpus all_cpus(const Machine& machine) {
  Cpus all;
  for (const auto& core : machine.cores) all.insert(all.end(), core.cpus.begin(), core.cpus.end());
  std::ranges::sort(all);
  return all;
}

Assignment assign_all(const Machine& machine, std::vector<unsigned> threads, std::size_t decoders = 1) {
  return assign(machine, all_cpus(machine), threads, decoders);
}

// 2 memory nodes × 8 cores × 2 hardware threads: core c has cpus c and c + 16, node 1 begins with core 8.
const Machine kBig = testing::machine(2, 1, 8, 2);

TEST(Assignment, WorkersHaveWholeCoresAndSpreadOverMemoryNodes) {
  const auto two = assign_all(kBig, {1, 1});
  EXPECT_EQ(two.workers, (std::vector<Cpus>{{0, 16}, {8, 24}}));
  EXPECT_TRUE(two.reason.empty());
  // Neighbours stay together: 0 and 1 on node 0, 2 and 3 on node 1.
  const auto four = assign_all(kBig, {2, 2, 2, 2});
  EXPECT_EQ(four.workers, (std::vector<Cpus>{{0, 1, 16, 17}, {2, 3, 18, 19}, {8, 9, 24, 25}, {10, 11, 26, 27}}));
}

TEST(Assignment, WorkersSpreadOverCachesOfANode) {
  const auto machine = testing::machine(1, 4, 2, 1);  // four caches with two cores each
  EXPECT_EQ(assign_all(machine, {1, 1, 1}).workers, (std::vector<Cpus>{{0}, {2}, {4}}));
  EXPECT_EQ(assign_all(machine, {2, 1}).workers, (std::vector<Cpus>{{0, 1}, {2}}));
  // No cache has three cores: it takes two caches, and leaves whole ones to the next.
  EXPECT_EQ(assign_all(machine, {3, 2}).workers, (std::vector<Cpus>{{0, 1, 2}, {4, 5}}));
}

TEST(Assignment, WorkerWithMoreThreadsThanANodeHasCoresTakesBoth) {
  const auto assignment = assign_all(kBig, {12});
  ASSERT_EQ(assignment.workers.size(), 1U);
  EXPECT_EQ(assignment.workers[0].size(), 24U);
  EXPECT_EQ(memory_nodes(kBig, assignment.workers[0]), (std::vector<unsigned>{0, 1}));
}

TEST(Assignment, WithFewerCoresThanThreadsWorkersGetHardwareThreads) {
  const auto machine = testing::machine(1, 1, 2, 2);  // cores {0, 2} and {1, 3}
  EXPECT_EQ(assign_all(machine, {1, 1, 1}).workers, (std::vector<Cpus>{{0}, {2}, {1}}));
}

TEST(Assignment, SixWorkersOnFourCoresAreNotPinned) {
  const auto assignment = assign_all(testing::machine(1, 1, 4, 1), {1, 1, 1, 1, 1, 1});
  EXPECT_TRUE(assignment.workers.empty());
  EXPECT_TRUE(assignment.helpers.empty());
  EXPECT_EQ(assignment.reason, "6 workers on this host have 6 threads for 4 cpus that this process may use (0-3)");
}

TEST(Assignment, RestrictedCpusAreTheOnlyOnesGiven) {
  // Cores 2, 3 and 9, the last one with one of its hardware threads.
  const Cpus allowed{2, 3, 9, 18, 19};
  const auto assignment = assign(kBig, allowed, std::vector<unsigned>{1, 1}, 1);
  EXPECT_EQ(assignment.workers, (std::vector<Cpus>{{2, 18}, {9}}));
  EXPECT_EQ(assignment.helpers, (Cpus{3, 19}));
  EXPECT_TRUE(assign(kBig, {5}, std::vector<unsigned>{1, 1}, 1).workers.empty());
  EXPECT_TRUE(assign(kBig, {}, std::vector<unsigned>{1}, 1).workers.empty());
  // Cpus that the machine does not have are no cpus.
  EXPECT_TRUE(assign(kBig, {40, 41}, std::vector<unsigned>{1}, 1).workers.empty());
}

TEST(Assignment, HelpersGetCoresThatAreLeftWhereTheySuffice) {
  const auto machine = testing::machine(1, 1, 4, 1);
  EXPECT_EQ(assign_all(machine, {1, 1}, 2).helpers, (Cpus{2, 3}));
  EXPECT_TRUE(assign_all(machine, {1, 1}, 3).helpers.empty());
  EXPECT_TRUE(assign_all(machine, {2, 2}, 1).helpers.empty());
}

TEST(Assignment, DescribesCpusAndMemoryNode) {
  EXPECT_EQ(describe(kBig, 3, {8, 24}), "worker 3 on cpus 8,24 (memory node 1)");
  EXPECT_EQ(describe(kBig, 0, {0, 1, 8}), "worker 0 on cpus 0-1,8 (memory nodes 0, 1)");
  EXPECT_EQ(describe(testing::machine(1, 1, 4, 1), 1, {1}), "worker 1 on cpu 1");
}

TEST(Assignment, PartsAreDisjointAndLargeEnoughOnEveryMachine) {
  rc::check([] {
    const auto machine = testing::machine(*rc::gen::inRange(1, 4), *rc::gen::inRange(1, 4), *rc::gen::inRange(1, 6),
                                          *rc::gen::inRange(1, 3));
    Cpus allowed;
    for (const auto cpu : all_cpus(machine))
      if (*rc::gen::inRange(0, 4) > 0) allowed.push_back(cpu);
    std::vector<unsigned> threads(static_cast<std::size_t>(*rc::gen::inRange(1, 8)));
    for (auto& count : threads) count = static_cast<unsigned>(*rc::gen::inRange(1, 5));
    const auto decoders = static_cast<std::size_t>(*rc::gen::inRange(0, 6));
    const auto assignment = assign(machine, allowed, threads, decoders);

    const auto wanted = std::accumulate(threads.begin(), threads.end(), std::size_t{0});
    RC_ASSERT(assignment.workers.empty() == (wanted > allowed.size()));
    RC_ASSERT(assignment.workers.empty() != assignment.reason.empty());
    if (assignment.workers.empty()) return;
    RC_ASSERT(assignment.workers.size() == threads.size());
    std::set<unsigned> given;
    const auto take = [&](const Cpus& cpus) {
      RC_ASSERT(common(cpus, allowed) == cpus);
      for (const auto cpu : cpus) RC_ASSERT(given.insert(cpu).second);
    };
    for (std::size_t worker = 0; worker < threads.size(); ++worker) {
      RC_ASSERT(assignment.workers[worker].size() >= threads[worker]);
      take(assignment.workers[worker]);
    }
    take(assignment.helpers);
  });
}

}  // namespace
}  // namespace troupe::core
