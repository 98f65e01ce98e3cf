// Nodes that rejoin a resumed run: every member's host counts the steps of this session, the newcomer's host as well.
#include <csignal>
#include <fstream>
#include <map>

#include "tests/nodes/nodes_fixture.hpp"

namespace troupe::nodes {
namespace {

/// A strategy, and options with which a wrong first step cannot pass by chance.
struct Case {
  std::string name;
  std::vector<std::string> settings;
};

class ResumedMembers : public NodesFixture, public testing::WithParamInterface<Case> {
 protected:
  [[nodiscard]] std::vector<std::string> endless() const {
    auto settings = GetParam().settings;
    for (const char* common : {"run.epochs=100000", "cluster.synthetic_step_ms=20", "run.tensorboard=false"})
      settings.emplace_back(common);
    return with(settings);
  }

  /// Leases completed in each epoch of the last session, by epochs done: computed or passed over.
  [[nodiscard]] std::map<int, std::uint64_t> leases_by_epoch() const {
    std::ifstream metrics(run() + "/metrics.jsonl");
    std::map<int, std::uint64_t> ended;
    std::map<int, std::uint64_t> of_worker;
    std::uint64_t before = 0;
    for (std::string text; std::getline(metrics, text);) {
      const auto line = nlohmann::json::parse(text);
      if (line["kind"] == "started") {
        ended.clear();
        of_worker.clear();
        before = 0;
      }
      if (line["kind"] == "worker")
        of_worker[line["worker"]] = line["steps"].get<std::uint64_t>() + line["passed"].get<std::uint64_t>();
      if (line["kind"] != "epoch") continue;
      std::uint64_t sum = 0;
      for (const auto& [worker, leases] : of_worker) sum += leases;
      ended[line["epoch"]] = sum - std::exchange(before, sum);
    }
    return ended;
  }
};

TEST_P(ResumedMembers, NewcomerAfterResumeTakesPart) {
  start_nodes(2);
  Process first(train(endless()));
  ASSERT_TRUE(first.says("epoch 2/")) << first.err();
  first.signal(SIGINT);
  ASSERT_EQ(first.wait(), 130) << first.err();

  Process again(resume());
  ASSERT_TRUE(again.says("epoch ", 2)) << again.err();  // the first line is the resumed checkpoint's epoch
  node(1).process().kill();
  ASSERT_TRUE(again.says("batches return")) << again.err();
  start_node({.tls = {}, .directory = {}, .port = node(1).port(), .within = {}});
  ASSERT_TRUE(again.says("joined as a new member: 3 of 3 workers")) << again.err();
  const auto epochs = count(again.err(), "epoch ");
  ASSERT_TRUE(again.says("epoch ", epochs + 3)) << again.err();
  again.signal(SIGINT);
  ASSERT_EQ(again.wait(), 130) << again.err();
  expect_replays(run());

  const auto ended = leases_by_epoch();
  ASSERT_GE(ended.size(), 3U);
  // 1200 samples in batches of 20: each lease once.
  for (auto it = std::prev(ended.end(), 2); it != ended.end(); ++it)
    EXPECT_EQ(it->second, 60U) << "epoch " << it->first;
}

INSTANTIATE_TEST_SUITE_P(
    , ResumedMembers,
    testing::Values(Case{"easgd", {"strategy.name=easgd"}}, Case{"ssp", {"strategy.name=ssp", "strategy.s=1"}},
                    Case{"sync_easgd", {"strategy.name=sync_easgd", "strategy.tau=7"}},
                    Case{"local_sgd", {"strategy.name=local_sgd", "strategy.tau=7"}},
                    Case{"diloco", {"strategy.name=diloco", "strategy.tau=7"}},
                    Case{"bsp_backup", {"strategy.name=bsp", "strategy.backup=1", "train.optimizer=adam"}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe::nodes
