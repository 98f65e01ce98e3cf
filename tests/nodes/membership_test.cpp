// Nodes that join: again after a loss, and late.
#include <csignal>

#include "tests/nodes/nodes_fixture.hpp"

namespace troupe::nodes {
namespace {

const std::vector<std::string> kEndlessRun{"run.epochs=100000", "cluster.synthetic_step_ms=20"};

class Membership : public NodesFixture {
 protected:
  /// One more node, at the address of the lost node `k`.
  void come_back(std::size_t k) { start_node({.tls = {}, .directory = {}, .port = node(k).port(), .within = {}}); }
  void lose(Process& run, std::size_t k, std::size_t times = 1) {
    node(k).process().kill();
    ASSERT_TRUE(run.says("batches return", times)) << run.err();
  }
  /// The run trains two more epochs, is interrupted, and can be replayed.
  void expect_goes_on(Process& run) {
    const auto epochs = count(run.err(), "epoch ");
    ASSERT_TRUE(run.says("epoch ", epochs + 2)) << run.err();
    run.signal(SIGINT);
    EXPECT_EQ(run.wait(), 130) << run.err();
    expect_replays(this->run());
  }
};

class Newcomers : public Membership, public testing::WithParamInterface<const char*> {};

TEST_P(Newcomers, ReturningNodeIsAMemberAgain) {
  start_nodes(2);
  Process run(train(with(kEndlessRun, with({std::string("strategy.name=") + GetParam()}))));
  ASSERT_TRUE(run.says("epoch 1/")) << run.err();
  lose(run, 1);
  come_back(1);
  ASSERT_TRUE(run.says("joined as a new member: 3 of 3 workers")) << run.err();
  expect_goes_on(run);
}

TEST_P(Newcomers, LateNodeJoins) {
  start_nodes(2);
  const auto both = names();
  node(1).process().kill();
  Process run(program({"train", config_, "--nodes", both, "--min-nodes", "1", "--set",
                       "run.dir=" + folder_.file("runs"), "--plain", "--set", "run.epochs=100000", "--set",
                       "cluster.synthetic_step_ms=20", "--set", std::string("strategy.name=") + GetParam()}));
  ASSERT_TRUE(run.says("worker 2 (node " + node(1).name() + ") is not connected yet")) << run.err();
  ASSERT_TRUE(run.says("epoch 1/")) << run.err();
  come_back(1);
  ASSERT_TRUE(run.says("joined as a new member: 3 of 3 workers")) << run.err();
  expect_goes_on(run);
}

INSTANTIATE_TEST_SUITE_P(, Newcomers, testing::Values("easgd", "downpour", "ssp", "sync_easgd", "diloco"),
                         [](const auto& info) { return std::string(info.param); });

// A newcomer has exchanged with the centre only: a later loss of another member does not affect it.
TEST_F(Membership, NewcomerTrainsOnAfterOthersAreLost) {
  start_nodes(3);
  Process run(train(with(kEndlessRun)));
  ASSERT_TRUE(run.says("epoch 1/")) << run.err();
  lose(run, 2);
  come_back(2);
  ASSERT_TRUE(run.says("joined as a new member")) << run.err();
  lose(run, 1, 2);
  come_back(1);
  ASSERT_TRUE(run.says("joined as a new member", 2)) << run.err();
  EXPECT_EQ(count(run.err(), "batches return"), 2) << run.err();
  expect_goes_on(run);
}

// Where the workers go in step, newcomers wait for the end of the epoch. If one is lost before that, the run continues undisturbed.
TEST_F(Membership, ANewcomerLostBeforeItsAdmissionIsDropped) {
  start_nodes(2);
  Process run(train(with({"strategy.name=diloco", "run.epochs=100000", "cluster.synthetic_step_ms=200"})));
  ASSERT_TRUE(run.says("epoch 1/")) << run.err();
  lose(run, 1);
  come_back(1);
  for (bool open = false; !open && run.runs();) {
    Process list(program({"nodes", node(2).name(), "--json"}));
    ASSERT_EQ(list.wait(), 0) << list.err();
    open = !nlohmann::json::parse(list.out().substr(0, list.out().find('\n')))["members"].empty();
  }
  node(2).process().kill();
  const auto epochs = count(run.err(), "epoch ");
  ASSERT_TRUE(run.says("epoch ", epochs + 2)) << run.err();
  come_back(1);
  ASSERT_TRUE(run.says("joined as a new member")) << run.err();
  expect_goes_on(run);
}

}  // namespace
}  // namespace troupe::nodes
