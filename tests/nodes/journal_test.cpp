// Journals that continue after a loss: new segments without the lost member and with the newcomer. The replay reaches every hash.
#include <csignal>
#include <filesystem>

#include "tests/nodes/nodes_fixture.hpp"
#include "tests/wait.hpp"

namespace troupe::nodes {
namespace {

namespace fs = std::filesystem;

class Journals : public NodesFixture {
 protected:
  void lose(Process& run, std::size_t k, std::size_t times) {
    node(k).process().kill();
    ASSERT_TRUE(run.says("batches return", times)) << run.err();
  }
  void come_back(std::size_t k) { start_node({.tls = {}, .directory = {}, .port = node(k).port(), .within = {}}); }

  /// `troupe replay` reaches the end of every segment and the run's final model.
  void expect_replays_whole(Process& run) {
    const std::string directory = summary(run)["run"];
    Process text(program({"replay", directory}));
    ASSERT_EQ(text.wait(), 0) << text.err();
    EXPECT_EQ(text.out().find("cut off"), std::string::npos) << text.out();
    Process json(program({"replay", directory, "--json"}));
    ASSERT_EQ(json.wait(), 0) << json.err();
    EXPECT_EQ(summary(json)["center_hash"], summary(run)["center_hash"]) << text.out();
  }
  /// Numbers of the existing segments.
  [[nodiscard]] std::vector<int> segments() const {
    std::vector<int> numbers;
    for (const auto& entry : fs::directory_iterator(run()))
      if (const auto name = entry.path().filename().string(); name.starts_with("journal-") && name.ends_with(".bin"))
        numbers.push_back(std::stoi(name.substr(8, 4)));
    std::ranges::sort(numbers);
    return numbers;
  }
};

struct Case {
  std::string name;
  std::vector<std::string> settings;
};

class TwoLostNodes : public Journals, public testing::WithParamInterface<Case> {};

TEST_P(TwoLostNodes, OneReturnsAndTheRunReplays) {
  start_nodes(3);
  auto settings = GetParam().settings;
  settings.insert(settings.end(), {"run.epochs=100000", "cluster.synthetic_step_ms=20"});
  Process run(train(with(settings)));
  ASSERT_TRUE(run.says("epoch 1/")) << run.err();
  lose(run, 1, 1);
  lose(run, 2, 2);
  const auto alone = count(run.err(), "epoch ");
  ASSERT_TRUE(run.says("epoch ", alone + 1)) << run.err();
  come_back(1);
  ASSERT_TRUE(run.says("joined as a new member: 2 of 3 workers")) << run.err();
  const auto epochs = count(run.err(), "epoch ");
  ASSERT_TRUE(run.says("epoch ", epochs + 2)) << run.err();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
  expect_replays_whole(run);
  EXPECT_EQ(segments().size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(
    , TwoLostNodes,
    testing::Values(Case{"easgd", {"strategy.name=easgd"}}, Case{"downpour", {"strategy.name=downpour"}},
                    Case{"ssp", {"strategy.name=ssp"}}, Case{"sync_easgd", {"strategy.name=sync_easgd"}},
                    Case{"bsp_backup", {"strategy.name=bsp", "strategy.backup=1"}},
                    Case{"diloco_delay",
                         {"strategy.name=diloco", "strategy.tau=4", "strategy.fragments=2", "strategy.delay=1",
                          "cluster.servers=2"}},
                    Case{"diloco_quorum", {"strategy.name=diloco", "strategy.tau=3", "strategy.quorum=1"}},
                    Case{"easgd_fp16", {"strategy.name=easgd", "exchange.wire=fp16"}}),
    [](const auto& info) { return info.param.name; });

class BoundedJournal : public Journals, public testing::WithParamInterface<const char*> {};

TEST_P(BoundedJournal, KeepsItsBoundAfterALoss) {
  start_nodes(2);
  constexpr std::uintmax_t kBound = 60'000;
  Process run(train(with({std::string("strategy.name=") + GetParam(), "run.journal=60 KB", "model.widths=[4]",
                          "run.epochs=100000", "cluster.synthetic_step_ms=3", "run.checkpoint_every=2 epochs"})));
  ASSERT_TRUE(run.says("epoch 1/")) << run.err();
  lose(run, 1, 1);
  const auto before = segments().back();
  // A segment begins only once its start state is on disk; training does not wait for it. The run's output is read meanwhile.
  ASSERT_TRUE(tests::eventually([&] { return !run.err().empty() && segments().back() > before + 2; }))
      << "no segments follow the loss: " << run.err();
  run.signal(SIGINT);
  ASSERT_EQ(run.wait(), 130) << run.err();
  const auto after = segments();
  std::uintmax_t old = 0;  // the two newest stay, whatever their size
  for (const auto& entry : fs::directory_iterator(this->run())) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("journal-") && std::stoi(name.substr(8, 4)) + 1 < after.back()) old += entry.file_size();
  }
  EXPECT_LE(old, kBound);
  expect_replays_whole(run);
}

INSTANTIATE_TEST_SUITE_P(, BoundedJournal, testing::Values("easgd", "downpour", "ssp", "local_sgd", "gossip"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace troupe::nodes
