// A strategy whose workers share every step loses a member: the state of the survivors is saved, and the resumed run has the numbers
// of an undisturbed one.
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "core/journal.hpp"
#include "strategies/host/journal_codec.hpp"
#include "tests/nodes/nodes_fixture.hpp"
#include "tests/wait.hpp"

namespace troupe::nodes {
namespace {

namespace fs = std::filesystem;

struct Loss {
  std::string name;
  int ms;            // after the second epoch: in a step, or between two epochs
  std::size_t node;  // node 0 has the worker whose parameters are the model
  std::string checkpoint_every = "1 epoch";
};

class EmergencyCheckpoint : public NodesFixture, public testing::WithParamInterface<Loss> {
 protected:
  /// Steps in the run's first session whose gradients were done, of the worker with most of them.
  [[nodiscard]] std::uint64_t most_steps() const {
    const auto journal = core::read_journal((fs::path(run()) / "journal-0001.bin").string());
    if (!journal) return 0;
    std::map<strategies::WorkerId, std::uint64_t> steps;
    std::uint64_t most = 0;
    for (const auto& record : journal->records) {
      const auto event = strategies::decode_worker_event(record);
      if (event && std::holds_alternative<strategies::StepDone>(event->event))
        most = std::max(most, ++steps[event->worker]);
    }
    return most;
  }
};

TEST_P(EmergencyCheckpoint, LosesAtMostOneStep) {
  const auto settings = with({"strategy.name=bsp", "train.momentum=0.9", "exchange.algorithm=asa",
                              "run.checkpoint_every=" + GetParam().checkpoint_every, "model.widths=[1000]"});
  start_nodes(2);
  Process run(train(with({"run.epochs=100000", "cluster.synthetic_step_ms=10"}, settings)));
  ASSERT_TRUE(run.says("epoch 2/")) << run.err();
  tests::let_pass(std::chrono::milliseconds(GetParam().ms));
  node(GetParam().node).process().kill();
  ASSERT_EQ(run.wait(), 75) << run.err();
  EXPECT_NE(run.err().find("; go on with `troupe train --resume " + this->run()), std::string::npos) << run.err();
  const std::uint64_t steps = summary(run)["steps"];
  EXPECT_EQ(steps % 3, 0U);
  const auto begun = most_steps();
  EXPECT_GE(begun, 40U);  // two epochs
  EXPECT_GE(steps / 3 + 1, begun);

  start_node();
  const auto epochs = two_epochs_after(run);
  Process again(resume_to(epochs));
  ASSERT_EQ(again.wait(), 0) << again.err();
  EXPECT_NE(again.err().find("step-" + fmt::format("{:012}", steps)), std::string::npos) << again.err();
  EXPECT_EQ(summary(again)["samples"], epochs * 1200) << again.err();
  // How long its steps take changes no number of a run.
  Process whole(train(with({"run.epochs=" + std::to_string(epochs)}, settings)));
  ASSERT_EQ(whole.wait(), 0) << whole.err();
  EXPECT_EQ(summary(again)["center_hash"], summary(whole)["center_hash"]) << again.err();
}

INSTANTIATE_TEST_SUITE_P(, EmergencyCheckpoint,
                         testing::Values(Loss{"a", 0, 1}, Loss{"b", 133, 1}, Loss{"OfTheFirst", 60, 0},
                                         Loss{"OfTheFirstAtACheckpoint", 41, 0, "3 steps"},
                                         Loss{"OfTheFirstAtAnotherCheckpoint", 111, 0, "3 steps"}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe::nodes
