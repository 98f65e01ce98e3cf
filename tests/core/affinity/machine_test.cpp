#include "core/affinity/machine.hpp"

#include <gtest/gtest.h>

#include "core/affinity/binding.hpp"
#include "tests/core/affinity/machines.hpp"

namespace troupe::core {
namespace {

TEST(Machine, CpusAreWrittenAsRanges) {
  EXPECT_EQ(to_text(Cpus{}), "none");
  EXPECT_EQ(to_text(Cpus{3}), "3");
  EXPECT_EQ(to_text(Cpus{0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
}

TEST(Machine, IsDescribedByItsParts) {
  EXPECT_EQ(describe(testing::machine(2, 1, 8, 2)), "2 memory nodes × 8 cores × 2 hardware threads");
  auto uneven = testing::machine(1, 1, 3, 2);
  uneven.cores[2].cpus = {2};
  EXPECT_EQ(describe(uneven), "1 memory node × 3 cores × 1-2 hardware threads");
  EXPECT_EQ(describe(Machine{}), "no cores");
}

TEST(Machine, ThisOneHasTheCpusThatThisProcessMayUse) {
  const auto& machine = this_machine();
  if (!machine) {
    EXPECT_EQ(machine.error().code, Errc::config);
    GTEST_SKIP() << machine.error().message;
  }
  Cpus found;
  for (const auto& core : machine->cores)
    for (const auto cpu : common(core.cpus, usable_cpus())) found.push_back(cpu);
  std::ranges::sort(found);
  EXPECT_EQ(found, usable_cpus());
}

}  // namespace
}  // namespace troupe::core
