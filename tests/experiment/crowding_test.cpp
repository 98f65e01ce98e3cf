// A warning when workers of one host have more threads than it has cores.
#include <numeric>

#include <gtest/gtest.h>

#include "experiment/run_spec.hpp"

namespace troupe::experiment {
namespace {

std::string warning(const std::vector<std::string>& overrides, unsigned cores) {
  auto config =
      core::Config::parse(schema(), "[model]\nname = \"lenet\"\n[data]\nname = \"glyphs\"\n", "a.toml", overrides);
  const auto settings = resolve(std::move(config.value())).value();
  std::vector<std::uint32_t> workers(static_cast<std::size_t>(settings.cluster.workers));
  std::iota(workers.begin(), workers.end(), 0U);
  const auto note = crowding(settings, workers, cores, "this machine");
  return note ? note->text : "";
}

TEST(Crowding, MoreThreadsThanCoresAreNamed) {
  EXPECT_EQ(warning({"cluster.workers=2"}, 2), "");
  EXPECT_EQ(warning({"cluster.workers=24"}, 2),
            "this machine has 2 cores for 24 workers: they slow each other down, and times and waits "
            "show that; lower cluster.workers or cluster.threads_per_worker");
  EXPECT_TRUE(warning({"cluster.workers=1", "cluster.threads_per_worker=3"}, 1)
                  .starts_with("this machine has 1 core for 1 worker with 3 threads: "));
  EXPECT_TRUE(warning({"cluster.workers=2", "cluster.threads_per_worker=[1,2]"}, 2)
                  .starts_with("this machine has 2 cores for 2 workers with 3 threads: "));
}

TEST(Crowding, WorkersThatSleepDoNotCrowd) {
  EXPECT_EQ(warning({"cluster.workers=24", "cluster.synthetic_step_ms=5"}, 2), "");
}

}  // namespace
}  // namespace troupe::experiment
