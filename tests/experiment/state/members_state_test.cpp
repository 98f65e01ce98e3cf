// Start states of segments in the middle of a run: the members and their states, as text and back.
#include <gtest/gtest.h>

#include "experiment/settings.hpp"
#include "experiment/state/start_state.hpp"
#include "nn/layout.hpp"

namespace troupe::experiment {
namespace {

class MembersState : public testing::Test {
 protected:
  MembersState() {
    auto config = core::Config::parse(schema(), "[model]\nname = \"mlp\"\nwidths = [3]\n[data]\nname = \"glyphs\"\n",
                                      "a.toml", {"strategy.name=easgd", "cluster.workers=3"});
    spec_ = build_run_spec(resolve(std::move(*config)).value(), false).value();
    checkpoint_.graph = spec_.graph;
    checkpoint_.vectors[""] = vector(0);
    put(checkpoint_, 0, ServerStart{.state = "half", .version = 5});
  }

  CanonicalVector vector(float value) const {
    return std::make_shared<const std::vector<float>>(static_cast<std::size_t>(spec_.graph->parameter_count()), value);
  }
  void put_worker(std::uint32_t worker) {
    WorkerStart start{.state = "host " + std::to_string(worker), .slots = {}, .statistics = {}, .peer_messages = {}};
    for (const auto slot : state_slots(spec_)) start.slots[slot] = vector(static_cast<float>(worker));
    put(checkpoint_, worker, start);
  }
  void expect_corrupt(const std::string& sign) const {
    const auto read = members_state(spec_, checkpoint_);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, core::Errc::corrupt);
    EXPECT_NE(read.error().message.find(sign), std::string::npos) << read.error().message;
  }

  RunSpec spec_;
  Checkpoint checkpoint_;
};

TEST_F(MembersState, LostWorkersHaveNoState) {
  put_worker(0);
  put_worker(2);
  put(checkpoint_, strategies::Membership{7, {0, 2}});
  const auto start = members_state(spec_, checkpoint_).value();
  EXPECT_EQ(start.membership, (strategies::Membership{7, {0, 2}}));
  ASSERT_EQ(start.workers.size(), 2U);
  EXPECT_EQ(start.workers.at(2).state, "host 2");
  EXPECT_EQ(start.workers.at(2).slots.at(strategies::kParams)->front(), 2);
  EXPECT_EQ(start.servers.at(0).version, 5U);
}

TEST_F(MembersState, StateOfAnOlderProgramMakesEveryWorkerAMember) {
  for (const std::uint32_t worker : {0, 1, 2}) put_worker(worker);
  const auto start = members_state(spec_, checkpoint_).value();
  EXPECT_EQ(start.membership, (strategies::Membership{0, {0, 1, 2}}));
  EXPECT_EQ(start.workers.size(), 3U);
}

TEST_F(MembersState, StateOfAProgramsOptimizerIsKept) {
  for (const std::uint32_t worker : {0, 1, 2}) put_worker(worker);
  const auto state = std::make_shared<const std::vector<std::byte>>(7, std::byte{5});
  WorkerStart start{.state = "host 1", .slots = {}, .statistics = {}, .peer_messages = {}, .own_state = state};
  put(checkpoint_, 1, start);
  const auto read = members_state(spec_, checkpoint_).value();
  EXPECT_EQ(read.workers.at(0).own_state, nullptr);
  EXPECT_EQ(read.workers.at(1).own_state, state);
}

TEST_F(MembersState, StateOfStepsIsKeptWhereAReplicaHasOne) {
  for (const std::uint32_t worker : {0, 1, 2}) put_worker(worker);
  const auto without = checkpoint_.members.size();
  WorkerStart start{.state = "host 1", .slots = {}, .statistics = {}, .peer_messages = {}, .steps = 68719476743};
  put(checkpoint_, 1, start);
  EXPECT_EQ(checkpoint_.members.size(), without + 1);
  const auto read = members_state(spec_, checkpoint_).value();
  EXPECT_EQ(read.workers.at(0).steps, 0U);
  EXPECT_EQ(read.workers.at(1).steps, 68719476743U);
}

TEST_F(MembersState, AMemberThatIsMissingIsNamed) {
  put_worker(0);
  put_worker(2);
  expect_corrupt("worker.1");
  put(checkpoint_, strategies::Membership{7, {1, 2}});
  expect_corrupt("worker.1");
}

TEST_F(MembersState, MembersThatNoRunHasAreCorrupt) {
  put_worker(0);
  for (const auto& workers : std::vector<std::vector<strategies::WorkerId>>{{}, {0, 3}, {2, 0}, {0, 0}}) {
    checkpoint_.members["membership"] = "epoch=1;workers=";
    if (!workers.empty()) put(checkpoint_, strategies::Membership{1, workers});
    EXPECT_FALSE(members_state(spec_, checkpoint_)) << testing::PrintToString(workers);
  }
}

}  // namespace
}  // namespace troupe::experiment
