/// The state that a host saves between two steps and restores.
#include <gtest/gtest.h>

#include "strategies/host/worker_host.hpp"
#include "tests/strategies/made.hpp"
#include "tests/strategies/scripted.hpp"

namespace troupe::strategies {
namespace {

TEST(WorkerHostState, InvalidStateIsNotRestored) {
  const auto restored = [](const std::string& versions, const std::string& skips) {
    NotingPorts ports(2);
    WorkerHost host(std::make_unique<ScriptedWorker>([](const auto&...) {}), {ports, &ports, &ports, &ports}, {});
    const auto text = "step=1;epoch=0p+0;lr=0p+0;versions=" + versions + ";skips=" + std::to_string(skips.size()) +
                      ":" + skips + ";half=0:;";
    const auto result = host.restore(text);
    if (!result) {
      EXPECT_EQ(result.error().code, core::Errc::corrupt) << result.error().message;
    }
    return result.has_value();
  };
  EXPECT_TRUE(restored("0:3,1:4,", "to=1;weight=1p-2;\n"));
  EXPECT_TRUE(restored("0:3,1:4,", "to=1;weight=1p-2;")) << "the last line's end may be missing";
  EXPECT_FALSE(restored("0:3,1:4,", "to=1;weight=1p-2")) << "cut off";
  EXPECT_FALSE(restored("0:3,1:4,", "to=1;")) << "no weight";
  EXPECT_FALSE(restored("0:3,1:4,", "\n")) << "a line that says nothing";
  EXPECT_FALSE(restored("0:3,7:4,", "")) << "a version of a shard that there is not";
  EXPECT_FALSE(restored("0:3,1:4,2:5,", "")) << "too many shards";
  EXPECT_FALSE(restored("0:3,", "")) << "too few";
}

/// The weight of a skipped send returns to the rule at the step's end, but to the worker's share of the model at once.
TEST(WorkerHostState, SkippedSendKeepsTheWorkersShare) {
  constexpr std::uint32_t kWorkers = 2;
  const auto strategy = made("[strategy]\nname = \"gossip\"\np = 1\n", {.workers = kWorkers});
  NotingPorts ports;
  ports.credit = false;
  std::vector<std::unique_ptr<WorkerHost>> hosts;
  for (WorkerId w = 0; w < kWorkers; ++w) {
    const WorkerHostOptions options{.self = w, .membership = {0, {0, 1}}};
    hosts.push_back(
        std::make_unique<WorkerHost>(strategy->worker(), WorkerPorts{ports, nullptr, nullptr, &ports}, options));
    hosts.back()->start(0);
  }
  for (int step = 0; step < 3; ++step) {
    for (const auto& host : hosts) host->step_done(0, {});
    EXPECT_EQ(hosts[0]->totals().skipped, static_cast<std::uint64_t>(step) + 1);
    EXPECT_EQ(hosts[0]->rule().weight(), 0.25) << "it has not heard of it yet";
    EXPECT_EQ(hosts[0]->weight() + hosts[1]->weight(), 1) << "a model is weighted in the middle of the run, too";
  }
  WorkerHost again(strategy->worker(), {ports, nullptr, nullptr, &ports}, {.self = 0, .membership = {0, {0, 1}}});
  ASSERT_TRUE(again.restore(hosts[0]->state()));
  EXPECT_EQ(again.weight(), 0.5) << "what was skipped is saved";
}

}  // namespace
}  // namespace troupe::strategies
