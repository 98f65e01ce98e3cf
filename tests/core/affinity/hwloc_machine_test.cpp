// Synthetic topologies of hwloc, as machines and as assignments.
#include "core/affinity/hwloc_machine.hpp"

#include <memory>

#include <gtest/gtest.h>

#include "core/affinity/assignment.hpp"
#include "tests/core/affinity/machines.hpp"

namespace troupe::core {
namespace {

Machine synthetic(const char* description) {
  hwloc_topology_t made = nullptr;
  EXPECT_EQ(hwloc_topology_init(&made), 0);
  const std::unique_ptr<hwloc_topology, void (*)(hwloc_topology_t)> topology(made, hwloc_topology_destroy);
  EXPECT_EQ(hwloc_topology_set_synthetic(made, description), 0);
  EXPECT_EQ(hwloc_topology_load(made), 0);
  const auto machine = machine_of(made);
  EXPECT_TRUE(machine.has_value());
  return machine.value_or(Machine{});
}

TEST(HwlocMachine, CoresHaveTheirCachesAndNodes) {
  const auto machine = synthetic("pack:2 [numa] l3:2 core:4 pu:2");
  ASSERT_EQ(machine.cores.size(), 16U);
  EXPECT_EQ(describe(machine), "2 memory nodes × 8 cores × 2 hardware threads");
  EXPECT_EQ(machine.cores[0], (Core{.cpus = {0, 1}, .cache = 0, .node = 0}));
  EXPECT_EQ(machine.cores[5], (Core{.cpus = {10, 11}, .cache = 1, .node = 0}));
  EXPECT_EQ(machine.cores[15], (Core{.cpus = {30, 31}, .cache = 3, .node = 1}));
}

TEST(HwlocMachine, NumbersOfTheOperatingSystemAreKept) {
  // The second hardware threads come after all first ones, as Linux numbers them.
  auto machine = synthetic("numa:2 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)");
  for (auto& core : machine.cores) core.cache = core.node;
  EXPECT_EQ(machine, testing::machine(2, 1, 2, 2));
}

TEST(HwlocMachine, WorkersOfTwoNodesOfEightCores) {
  const auto machine = synthetic("numa:2 core:8 pu:2");
  Cpus all(32);
  for (unsigned cpu = 0; cpu < 32; ++cpu) all[cpu] = cpu;
  EXPECT_EQ(assign(machine, all, std::vector<unsigned>{4, 4}, 2).workers,
            (std::vector<Cpus>{{0, 1, 2, 3, 4, 5, 6, 7}, {16, 17, 18, 19, 20, 21, 22, 23}}));
  const Cpus container{0, 1, 2, 3};  // two cores
  EXPECT_EQ(assign(machine, container, std::vector<unsigned>{1, 1}, 2).workers, (std::vector<Cpus>{{0, 1}, {2, 3}}));
  EXPECT_FALSE(assign(machine, container, std::vector<unsigned>{5}, 2).reason.empty());
}

TEST(HwlocMachine, MachineWithoutCoresOrNodesCountsItsProcessors) {
  EXPECT_EQ(synthetic("pu:3"), testing::machine(1, 1, 3, 1));
}

}  // namespace
}  // namespace troupe::core
