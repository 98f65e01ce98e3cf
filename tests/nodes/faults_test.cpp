// Processes that are killed, stopped or disconnected while they train.
#include <csignal>

#include "tests/nodes/nodes_fixture.hpp"
#include "tests/nodes/resets.hpp"
#include "tests/wait.hpp"

namespace troupe::nodes {
namespace {

using Faults = NodesFixture;

// 60 batches per epoch over three workers, 20 ms each: about 0.4 s.
constexpr std::uint64_t kEpochs = 6;
const std::vector<std::string> kLong{"run.epochs=6", "cluster.synthetic_step_ms=20"};
const std::vector<std::string> kEndless{"run.epochs=100000", "cluster.synthetic_step_ms=20"};

/// Losses of a node that an endless run survives.
class EndlessRunWithALoss : public NodesFixture {
 protected:
  /// `run` continues, and is then finished over the remaining nodes.
  void expect_survives(Process& run) {
    ASSERT_TRUE(run.says("is lost")) << run.err();
    const auto begun = count(run.err(), "epoch ");
    ASSERT_TRUE(run.says("epoch ", begun + 1)) << run.err();
    run.signal(SIGINT);
    ASSERT_EQ(run.wait(), 130) << run.err();
    const auto epochs = static_cast<std::int64_t>(two_epochs_after(run));
    Process rest(resume_to(epochs));
    ASSERT_EQ(rest.wait(), 0) << rest.err();
    // The lost node's leases have returned: every sample of every epoch is trained once. Replay is not tested here: the lost node's last
    // journal records may be missing. If the workers go in step, the lost node's part of begun rounds is passed over, not returned.
    const std::int64_t samples = summary(rest)["samples"];
    EXPECT_LE(samples, epochs * 1200) << rest.err();
    EXPECT_GE(samples, epochs * 1200 - 200) << rest.err();
  }
};

class SurvivedLoss : public EndlessRunWithALoss, public testing::WithParamInterface<const char*> {};

TEST_P(SurvivedLoss, RunContinuesWithoutAKilledNode) {
  start_nodes(2);
  Process run(train(with(kEndless, with({std::string("strategy.name=") + GetParam()}))));
  ASSERT_TRUE(run.says("epoch 1/")) << run.err();
  node(1).process().kill();
  expect_survives(run);
  expect_free();
}

INSTANTIATE_TEST_SUITE_P(, SurvivedLoss, testing::Values("easgd", "downpour", "ssp", "local_sgd", "diloco", "gossip"),
                         [](const auto& info) { return std::string(info.param); });

struct Together {
  std::string name;
  std::vector<std::string> settings;
};

class FatalLoss : public NodesFixture, public testing::WithParamInterface<Together> {};

TEST_P(FatalLoss, KilledNodeEndsTheRunAndResumeContinuesIt) {
  start_nodes(2);
  Process run(train(with(kEndless, with(GetParam().settings))));
  ASSERT_TRUE(run.says("epoch 2/")) << run.err();
  node(1).process().kill();
  EXPECT_EQ(run.wait(), 75) << run.err();
  EXPECT_NE(run.err().find("is lost"), std::string::npos) << run.err();
  EXPECT_NE(run.err().find("troupe train --resume " + this->run()), std::string::npos) << run.err();
  start_node();
  const auto epochs = two_epochs_after(run);
  Process again(resume_to(epochs));
  EXPECT_EQ(again.wait(), 0) << again.err();
  EXPECT_NE(again.err().find("resuming from"), std::string::npos) << again.err();
  EXPECT_EQ(summary(again)["samples"], epochs * 1200) << again.err();
}

/// A worker that ends while others map its device's memory, and have mapped theirs to it.
TEST_F(EndlessRunWithALoss, RunsContinueWithoutANodeWhoseDeviceMemoryIsMapped) {
  start_nodes(2);
  for (const char* strategy : {"easgd", "local_sgd", "gossip"}) {
    SCOPED_TRACE(strategy);
    Process run(train(with(kEndless, with({std::string("strategy.name=") + strategy, "cluster.device=cuda_on_host"}))));
    ASSERT_TRUE(run.says("epoch 1/")) << run.err();
    EXPECT_NE(run.err().find("processes of one host map each other's device memory"), std::string::npos) << run.err();
    nodes_.back().process().kill();
    expect_survives(run);
    start_node();
  }
}

INSTANTIATE_TEST_SUITE_P(, FatalLoss,
                         testing::Values(Together{"bsp", {"strategy.name=bsp"}},
                                         Together{"bsp_shm", {"strategy.name=bsp", "exchange.algorithm=shm"}},
                                         Together{"bsp_on_mapped_devices",
                                                  {"strategy.name=bsp", "exchange.algorithm=shm",
                                                   "cluster.device=cuda_on_host"}},
                                         Together{"pairs", {"strategy.name=pairs"}},
                                         Together{"pairs_shm", {"strategy.name=pairs", "exchange.algorithm=shm"}}),
                         [](const auto& info) { return info.param.name; });

// While it opens its data, compiles or measures: the run does not wait for the killed node.
TEST_F(Faults, NodeKilledWhileTheRunBeginsEndsIt) {
  start_nodes(2);
  for (const std::string endpoint : {"tcp", "shm"}) {
    for (const int moment : {50, 100, 150, 200, 250, 300}) {
      start_node();
      Process run(train(with(kEndless, with({"strategy.name=bsp", "exchange.endpoint=" + endpoint}))));
      tests::let_pass(std::chrono::milliseconds(moment));
      nodes_.back().process().kill();
      EXPECT_EQ(run.wait(), 75) << endpoint << ", " << moment << ": " << run.err();
      EXPECT_NE(run.err().find("troupe: "), std::string::npos) << run.err();
      EXPECT_EQ(run.err().find("exit_reason"), std::string::npos) << run.err();
    }
  }
}

/// The others wait for a sum with those two. They would report their silence only after minutes.
TEST_F(Faults, TwoNodesThatDoNotReachEachOtherEndTheRunWhileItMeasures) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer must be loaded first";
#endif
  // Either may connect to the other.
  const auto without = [](const std::string& other) {
    return std::vector<std::string>{"env", "LD_PRELOAD=" TROUPE_UNREACHABLE_HOST, "TROUPE_TEST_UNREACHABLE=" + other};
  };
  start_node({.host = "127.0.0.2", .within = without("127.0.0.3")});
  start_node({.host = "127.0.0.3", .within = without("127.0.0.2")});
  start_node({.host = "127.0.0.4"});
  Process run(train(with({"strategy.name=bsp", "exchange.endpoint=tcp", "exchange.algorithm=auto"})));
  EXPECT_EQ(run.wait(), 75) << run.err();
  EXPECT_NE(run.err().find("No route to host"), std::string::npos) << run.err();
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_TRUE(node(k).process().says(": ends\n")) << node(k).log();
  }
}

/// As `ulimit -Sn` does; the node raises its limit to the hard one.
TEST_F(Faults, ManyWorkersOfANodeNeedMoreOpenFilesThanTheSoftLimit) {
  start_node({.within = {"prlimit", "--nofile=256:20000"}});
  const std::vector<std::string> many{"strategy.name=bsp", "exchange.endpoint=shm", "cluster.workers=24",
                                      "data.batch=5", "run.epochs=1"};
  Process run(train(with(many)));
  EXPECT_EQ(run.wait(), 0) << run.err();
}

TEST_F(Faults, ANodeThatMayOpenTooFewFilesSaysHowManyItNeeds) {
  start_node({.within = {"prlimit", "--nofile=256:256"}});
  for (const std::string endpoint : {"shm", "tcp"}) {
    Process run(train(with({"strategy.name=bsp", "exchange.endpoint=" + endpoint, "cluster.workers=24"})));
    EXPECT_EQ(run.wait(), 78) << run.err();
    for (const auto& part : {node(0).name(), std::string("open files"), std::string("256"), std::string("ulimit -Hn")})
      EXPECT_NE(run.err().find(part), std::string::npos) << run.err();
  }
  expect_free();
}

/// Shared memory is a file to the kernel.
TEST_F(Faults, ANodeOutlivesItsLimitOnTheSizeOfFiles) {
  start_node({.within = {"prlimit", "--fsize=1024000"}});
  Process run(train(with({"strategy.name=bsp", "exchange.endpoint=shm", "exchange.algorithm=shm", "model.name=mlp",
                          "model.widths=[2000,2000]"})));
  EXPECT_EQ(run.wait(), 74) << run.err();
  EXPECT_NE(run.err().find("shared memory"), std::string::npos) << run.err();
  EXPECT_NE(run.err().find("ulimit -f"), std::string::npos) << run.err();
  expect_free();
}

TEST_F(Faults, ARunWithoutAnyNodeLeftEnds) {
  start_nodes(1);
  Process run(train(with(kEndless)));
  ASSERT_TRUE(run.says("epoch 1/")) << run.err();
  node(0).process().kill();
  EXPECT_EQ(run.wait(), 75) << run.err();
  EXPECT_NE(run.err().find("--resume"), std::string::npos) << run.err();
}

TEST_F(EndlessRunWithALoss, ANodeThatIsStoppedByItsUserIsLost) {
  start_nodes(2);
  Process run(train(with(kEndless)));
  ASSERT_TRUE(run.says("epoch 1/")) << run.err();
  node(1).process().signal(SIGTERM);
  EXPECT_EQ(node(1).process().wait(), 0) << node(1).log();
  expect_survives(run);
}

TEST_F(Faults, NodesOutliveTheCoordinator) {
  start_nodes(2);
  for (const char* strategy : {"easgd", "bsp"}) {
    const std::vector<std::string> settings{std::string("strategy.name=") + strategy,
                                            "run.dir=" + folder_.file(strategy)};
    Process run(train(with(kEndless, with(settings))));
    ASSERT_TRUE(run.says("epoch 2/")) << run.err();
    run.kill();
    std::string directory;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.file(strategy))) directory = entry.path();
    Process again(program({"train", "--resume", directory, "--nodes", names(), "--plain", "--json", "--set",
                           "run.epochs=6", "--set", "cluster.synthetic_step_ms=0"}));
    EXPECT_EQ(again.wait(), 0) << strategy << ": " << again.err();
    EXPECT_EQ(summary(again)["samples"], kEpochs * 1200) << again.err();
  }
  // Every site that began has ended: two workers at the first node, one at the other, in two runs that were killed and two
  // that were not.
  EXPECT_TRUE(node(0).process().says(": ends", 8)) << node(0).log();
  EXPECT_TRUE(node(1).process().says(": ends", 4)) << node(1).log();
}

/// A node is lost after five seconds: where this process woke too late, that says nothing.
TEST_F(Faults, ThreeSecondsOfSilenceLoseNoNode) {
  start_nodes(2);
  for (const char* strategy : {"easgd", "bsp"}) {
    Process run(train(with(kEndless, with({std::string("strategy.name=") + strategy}))));
    ASSERT_TRUE(run.says("epoch 1/")) << run.err();
    const auto stopped = std::chrono::steady_clock::now();
    node(1).process().signal(SIGSTOP);
    tests::let_pass(std::chrono::seconds(3));
    node(1).process().signal(SIGCONT);
    const bool late = std::chrono::steady_clock::now() - stopped > std::chrono::milliseconds(3500);
    if (late) continue;
    const auto epochs = count(run.err(), "epoch ");
    EXPECT_TRUE(run.says("epoch ", epochs + 3)) << run.err();
    run.signal(SIGINT);
    EXPECT_EQ(run.wait(), 130) << run.err();
    EXPECT_EQ(run.err().find("lost"), std::string::npos) << run.err();
  }
}

TEST_F(Faults, LongSilentNodeIsLostAndFreeWhenItContinues) {
  start_nodes(2);
  Process run(train(with(kEndless)));
  ASSERT_TRUE(run.says("epoch 1/")) << run.err();
  node(1).process().signal(SIGSTOP);
  ASSERT_TRUE(run.says("is lost")) << run.err();
  const auto epochs = count(run.err(), "epoch ");
  ASSERT_TRUE(run.says("epoch ", epochs + 1)) << run.err();
  node(1).process().signal(SIGCONT);
  EXPECT_TRUE(node(1).process().says(": ends")) << node(1).log();
  ASSERT_TRUE(run.says("epoch ", epochs + 3)) << run.err();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
  EXPECT_EQ(count(run.err(), "is lost"), 1) << run.err();
  expect_free();
}

TEST_F(Faults, ACoordinatorThatIsSilentForLongHasLostItsWorkers) {
  start_nodes(2);
  Process run(train(with(kEndless)));
  ASSERT_TRUE(run.says("epoch 2/")) << run.err();
  run.signal(SIGSTOP);
  for (std::size_t k = 0; k < 2; ++k) EXPECT_TRUE(node(k).process().says(": ends", 2 - k)) << node(k).log();
  run.signal(SIGCONT);
  EXPECT_EQ(run.wait(), 75) << run.err();
  EXPECT_NE(run.err().find("--resume"), std::string::npos) << run.err();
  Process again(resume(with({"run.epochs=6", "cluster.synthetic_step_ms=0"})));
  EXPECT_EQ(again.wait(), 0) << again.err();
}

TEST_F(Faults, SenderHoldsNoMoreThanItsCreditForASilentReader) {
  start_nodes(2);
  // 6 MB of parameters: unread peer messages to the stopped worker would soon take hundreds of megabytes.
  Process run(train(with({"strategy.name=gossip", "model.widths=[1500]", "run.epochs=100000", "exchange.endpoint=tcp",
                          "cluster.synthetic_step_ms=5", "cluster.workers=2"})));
  ASSERT_TRUE(run.says("epoch 2/")) << run.err();
  const auto before = node(0).resident();
  node(1).process().signal(SIGSTOP);
  std::uint64_t most = before;
  for (int moment = 0; moment < 30; ++moment) {
    tests::let_pass(std::chrono::milliseconds(100));
    most = std::max(most, node(0).resident());
  }
  node(1).process().signal(SIGCONT);
  EXPECT_LT(most - before, 64U << 20) << before;
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
}

class ConnectionResets : public NodesFixture, public testing::WithParamInterface<const char*> {};

TEST_P(ConnectionResets, CostNothing) {
  start_nodes(2);
  const auto settings = with(
      kLong, with({std::string("strategy.name=") + GetParam(), "exchange.endpoint=tcp", "exchange.algorithm=asa"}));
  Process run(train(settings));
  std::size_t resets = 0;
  for (std::size_t epoch = 1; epoch <= 3; ++epoch) {
    ASSERT_TRUE(run.says("epoch ", epoch)) << run.err();
    resets += reset_data(node(1).process().pid(), {node(0).port(), node(1).port()});
  }
  if (resets == 0) {
    run.signal(SIGINT);
    run.wait();
    GTEST_SKIP() << "resetting connections needs root, iproute2 and CONFIG_INET_DIAG_DESTROY";
  }
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.err().find("lost"), std::string::npos) << run.err();
  EXPECT_EQ(summary(run)["samples"], kEpochs * 1200);
  if (std::string(GetParam()) != "bsp") return;
  Process unharmed(train(with({"run.dir=" + folder_.file("unharmed")}, settings)));
  ASSERT_EQ(unharmed.wait(), 0) << unharmed.err();
  EXPECT_EQ(summary(run)["center_hash"], summary(unharmed)["center_hash"]);
  EXPECT_EQ(summary(run)["test"]["accuracy"], summary(unharmed)["test"]["accuracy"]);
}

INSTANTIATE_TEST_SUITE_P(, ConnectionResets, testing::Values("bsp", "easgd", "gossip"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace troupe::nodes
