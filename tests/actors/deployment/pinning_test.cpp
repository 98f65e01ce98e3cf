#include "actors/deployment/pinning.hpp"

#include <set>

#include <gtest/gtest.h>

#include "core/affinity/binding.hpp"
#include "tests/actors/small_run.hpp"
#include "tests/core/affinity/machines.hpp"

namespace troupe::actors {
namespace {

using Ranks = std::vector<std::uint32_t>;

core::Cpus first_cpus(unsigned count) {
  core::Cpus cpus;
  for (unsigned cpu = 0; cpu < count; ++cpu) cpus.push_back(cpu);
  return cpus;
}

Settings settings(const std::vector<std::string>& options) {
  auto config = core::Config::parse(experiment::schema(), "[model]\nname = \"lenet\"\n[data]\nname = \"glyphs\"\n",
                                    "a.toml", options);
  return experiment::resolve(std::move(config.value())).value();
}

/// Four workers at sites 1 to 4, on the given hosts; site 0 has the coordinator.
ExchangePlan apart(std::vector<std::uint32_t> hosts) {
  ExchangePlan plan{.endpoint = "tcp", .worker_sites = {1, 2, 3, 4}};
  plan.site_hosts = std::move(hosts);
  return plan;
}

const char* unset(const char*) { return nullptr; }
const char* close_binding(const char* name) { return std::string_view(name) == "OMP_PROC_BIND" ? "close" : nullptr; }
const char* no_binding(const char* name) { return std::string_view(name) == "OMP_PROC_BIND" ? "false" : nullptr; }

TEST(PinSite, WorkersOfOneHostAreThoseOfItsSites) {
  EXPECT_EQ(workers_on_host({}, 3, 0), (Ranks{0, 1, 2}));
  EXPECT_EQ(workers_on_host(apart({}), 4, 2), (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(workers_on_host(apart({0, 0, 0, 1, 1}), 4, 1), (Ranks{0, 1}));
  EXPECT_EQ(workers_on_host(apart({0, 0, 0, 1, 1}), 4, 4), (Ranks{2, 3}));
  EXPECT_EQ(workers_on_host(apart({0, 1, 0, 1, 0}), 4, 3), (Ranks{0, 2}));
}

// As processes of mpirun, or of `troupe node`, do: each computes its own part.
TEST(PinSite, ProcessesOfOneHostHaveDisjointCores) {
  const auto machine = core::testing::machine(2, 1, 4, 2);
  const auto all = settings({"cluster.workers=4", "cluster.threads_per_worker=[1, 2, 2, 1]"});
  std::set<unsigned> given;
  for (std::uint32_t worker = 0; worker < 4; ++worker) {
    const auto pinning = pin_site(all, apart({0, 0, 0, 0, 0}), worker + 1, {worker}, machine, first_cpus(16));
    ASSERT_EQ(pinning.workers.size(), 1U);
    EXPECT_EQ(pinning.workers[0].size(), 2U * static_cast<unsigned>(all.threads(worker)));
    for (const auto cpu : pinning.workers[0]) EXPECT_TRUE(given.insert(cpu).second) << worker << " on " << cpu;
    for (const auto cpu : pinning.loaders) EXPECT_FALSE(given.contains(cpu)) << cpu;
  }
}

TEST(PinSite, WorkersOfOtherHostsTakeNoCores) {
  const auto machine = core::testing::machine(1, 1, 2, 1);
  const auto four = settings({"cluster.workers=4"});
  EXPECT_EQ(pin_site(four, apart({0, 0, 0, 1, 1}), 4, {3}, machine, {0, 1}).workers, (std::vector<core::Cpus>{{1}}));
  const auto crowded = pin_site(four, apart({0, 0, 0, 0, 0}), 4, {3}, machine, {0, 1});
  EXPECT_TRUE(crowded.workers.empty());
  EXPECT_EQ(crowded.text,
            "workers are not pinned: 4 workers on this host have 4 threads for 2 cpus that this process may use (0-1)");
}

TEST(PinSite, DecodersHaveCoresOnlyWhereEnoughAreLeft) {
  const auto machine = core::testing::machine(1, 1, 8, 1);
  const auto decoding = [&](int threads, const ExchangePlan& exchange) {
    return pin_site(settings({"cluster.workers=2", "data.decode_threads=" + std::to_string(threads)}), exchange, 0,
                    {0, 1}, machine, first_cpus(8))
        .loaders;
  };
  EXPECT_EQ(decoding(6, {}), (core::Cpus{2, 3, 4, 5, 6, 7}));
  EXPECT_TRUE(decoding(7, {}).empty());
  // A process of its own for each worker: twice as many threads.
  EXPECT_EQ(decoding(3, apart({0, 0, 0})), (core::Cpus{2, 3, 4, 5, 6, 7}));
  EXPECT_TRUE(decoding(4, apart({0, 0, 0})).empty());
}

TEST(PinSite, ObstaclesAreNamed) {
  const core::Result<core::Machine> machine = core::testing::machine(1, 1, 2, 1);
  EXPECT_EQ(pinning_obstacle(machine, true, unset), "");
  EXPECT_EQ(pinning_obstacle(machine, true, no_binding), "");
  EXPECT_EQ(pinning_obstacle(machine, true, close_binding), "OMP_PROC_BIND is set, and OpenMP places threads by it");
  EXPECT_NE(pinning_obstacle(machine, false, unset), "");
  EXPECT_EQ(pinning_obstacle(core::fail(core::Errc::config, "no hwloc"), true, unset), "no hwloc");
}

TEST(PinSite, OffSaysNothing) {
  const auto pinning = pin_site(settings({"cluster.pinning=off"}), {}, 0, {0, 1});
  EXPECT_TRUE(pinning.workers.empty());
  EXPECT_EQ(pinning.text, "");
}

TEST(PinSite, NoteJoinsTheSites) {
  const std::string crowded = "workers are not pinned: why";
  EXPECT_EQ(pinning_note({}), "");
  EXPECT_EQ(pinning_note({"", ""}), "");
  EXPECT_EQ(pinning_note({"worker 0 on cpu 0", "worker 1 on cpu 1", ""}),
            "pinned: worker 0 on cpu 0, worker 1 on cpu 1");
  EXPECT_EQ(pinning_note({crowded, crowded}), crowded);
  EXPECT_EQ(pinning_note({crowded, "worker 1 on cpu 1"}), "pinned: worker 1 on cpu 1; " + crowded);
}

// In this process, with real threads: a run with pinning reaches the same bits as one without, also with threads of their own for decoding.
TEST(PinnedRun, ComputesTheSameBits) {
  std::vector<std::map<std::string, std::vector<float>>> tensors;
  for (const auto* pinning : {"off", "auto"}) {
    tests::SmallRun run({std::string("cluster.pinning=") + pinning, "cluster.workers=1", "cluster.kernels=fixed",
                         "cluster.threads_per_worker=1", "data.decode_threads=1"});
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    tensors.push_back(run.tensors());
  }
  EXPECT_EQ(tensors[0], tensors[1]);
}

TEST(PinnedRun, LeavesTheProcessItsCpus) {
  const auto before = core::usable_cpus();
  tests::SmallRun run({"cluster.workers=2", "exchange.endpoint=inproc"});
  const auto end = run.train();
  EXPECT_FALSE(end.failed) << end.error.message;
  EXPECT_EQ(core::usable_cpus(), before);
}

}  // namespace
}  // namespace troupe::actors
