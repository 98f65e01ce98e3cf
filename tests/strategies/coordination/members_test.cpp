// Members that are lost, newcomers, and the emergency when nobody can take another step.
#include "tests/strategies/coordination/recording_port.hpp"

namespace troupe::coordination {
namespace {

using State = Coordinator::State;

void expect_peer_lost(const TestedRun& run, std::string_view part) {
  ASSERT_TRUE(run.port.error);
  EXPECT_EQ(run.port.error->code, core::Errc::peer_lost);
  EXPECT_NE(run.port.error->message.find(part), std::string::npos) << run.port.error->message;
}

TEST(LostMembers, TheirLeasesReturnToTheOthers) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->requested(1, 1);
  run.coordinator->requested(0, 4);  // all that remain: one waits
  run.port.take_calls();
  const auto lease = run.port.granted.front().second;
  run.coordinator->lost(1, "gone");
  EXPECT_EQ(run.port.take_calls(), "removed 1; lost 1; members 0; replace 1; grant 0 1");
  ASSERT_EQ(run.port.losses.size(), 1U);
  EXPECT_TRUE(run.port.losses[0].again);
  ASSERT_EQ(run.port.losses[0].leases.size(), 1U);
  EXPECT_EQ(run.port.losses[0].leases[0].index, lease);
}

TEST(LostMembers, TheirReportsDoNotCount) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->lost(1, "gone");
  run.port.take_calls();
  run.coordinator->requested(1, 1);
  const std::uint64_t lease = 0;
  run.coordinator->progressed(1, 1, {&lease, 1});
  EXPECT_EQ(run.port.take_calls(), "");
  EXPECT_EQ(run.coordinator->steps().of(1), 0U);
}

TEST(LostMembers, LossOfTheLastWorkerEndsTheRun) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->lost(0, "gone");
  EXPECT_FALSE(run.coordinator->ended());
  run.coordinator->lost(1, "gone too");
  expect_peer_lost(run, "worker 1 is lost: gone too; no worker is left: go on");
  EXPECT_EQ(run.port.ends, 1);
}

// Its program would fail again: no advice to go on.
TEST(LostMembers, AProgramThatFailsCostsItsWorkerAndIsTheErrorOfARunWithoutWorkers) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->member_failed(1, {core::Errc::program, "worker 0: boom"});
  EXPECT_FALSE(run.coordinator->ended());
  ASSERT_EQ(run.port.losses.size(), 1U);
  EXPECT_EQ(run.port.losses[0].why, "worker 0: boom");
  run.coordinator->member_failed(2, {core::Errc::program, "worker 1: boom"});
  ASSERT_TRUE(run.port.error);
  EXPECT_EQ(run.port.error->code, core::Errc::program);
  EXPECT_EQ(run.port.error->message, "worker 1: boom; no worker is left");
}

TEST(LostMembers, AProgramThatFailsAtTheCoordinatorsSiteEndsTheRun) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->member_failed(0, {core::Errc::program, "worker 0: boom"});
  ASSERT_TRUE(run.port.error);
  EXPECT_EQ(run.port.error->message, "worker 0: boom");
}

/// Who stops a run, as a batch system does, often signals its programs, too.
TEST(LostMembers, AProgramThatEndsWhileTheRunIsStoppedHasNotFailed) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->interrupted();
  run.coordinator->member_failed(1, {core::Errc::program, "worker 0: it ended with exit code 0"});
  run.coordinator->member_failed(2, {core::Errc::program, "worker 1: it ended with exit code 0"});
  expect_peer_lost(run, "no worker is left: go on");
}

TEST(LostMembers, LossOfAPartOfTheCentreEndsTheRun) {
  TestedRun run(Kind::on_demand);
  run.initial_members.server_sites = {2};
  run.to_training();
  run.coordinator->site_lost(1, 2, "silent");
  expect_peer_lost(run, "with it its part of the centre");
}

TEST(LostMembers, TwoThatLoseEachOtherRemainWithoutCollectives) {
  TestedRun run(Kind::peers);
  run.to_training();
  run.coordinator->site_lost(1, 2, "silent");
  EXPECT_EQ(run.port.take_calls(), "disconnected 0 1");
  EXPECT_TRUE(run.coordinator->members().all());
}

TEST(LostMembers, ALossBeforeTheBeginningIsKept) {
  TestedRun run(Kind::on_demand);
  run.coordinator->site_lost(0, 2, "silent");
  EXPECT_TRUE(run.coordinator->members().all());
  run.coordinator->begin(run.initial_members);
  EXPECT_FALSE(run.coordinator->members().has(1));
}

/// There is nothing to go on from.
TEST(LostMembers, BeforeTheFirstCheckpointTheRunIsToBeStartedAgain) {
  for (const auto kind : {Kind::shared, Kind::on_demand}) {
    TestedRun run(kind);
    run.coordinator->begin(run.initial_members);
    run.coordinator->lost(0, "killed");
    if (kind == Kind::on_demand) run.coordinator->lost(1, "killed too");
    while (!run.coordinator->ended()) run.answer();
    expect_peer_lost(run, "start again");
  }
}

TEST(AbsentMembers, AreReplacedAsLostOnesAre) {
  TestedRun run(Kind::on_demand);
  run.initial_members.absent = {1};
  run.coordinator->begin(run.initial_members);
  EXPECT_EQ(run.port.take_calls(), "removed 1; absent 1; replace 1; members 0; take_model");
}

// ---- newcomers

TEST(Newcomers, JoinWithAModelThatIsOnDisk) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->requested(0, 1);
  run.coordinator->lost(1, "gone");
  run.coordinator->arrived(1);
  run.port.take_calls();
  run.finish_leases();
  run.until(Task::prepare_newcomer);
  EXPECT_EQ(run.port.take_calls(), "take_model; take_model; take_state; write; prepare_newcomer");
  EXPECT_EQ(run.port.last.worker, 1U);
  EXPECT_FALSE(run.coordinator->members().has(1));
  run.answer();
  EXPECT_EQ(run.port.take_calls(), "members 0,1; begin_newcomer") << "the others know it before it may say anything";
  run.answer();
  EXPECT_EQ(run.port.take_calls(), "settle_workers") << "a new segment of the journal";
}

TEST(Newcomers, InStepJoinAtAnEpochsEndAndAtTheSameStep) {
  TestedRun run(Kind::in_step);
  run.to_training();
  run.step();
  run.coordinator->lost(1, "gone");
  run.coordinator->arrived(1);
  EXPECT_EQ(run.coordinator->state(), State::training);
  run.train();
  run.until(Task::prepare_newcomer);
  EXPECT_EQ(run.coordinator->leases().epoch(), 1U);
  EXPECT_EQ(run.port.last.first_step, run.steps[0]);
}

TEST(Newcomers, NewcomerAnnouncedAgainWhilePreparedJoinsOnce) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->lost(1, "gone");
  run.coordinator->arrived(1);
  run.until(Task::prepare_newcomer);
  run.coordinator->arrived(1);
  run.port.take_calls();
  run.answer();
  run.answer();
  EXPECT_EQ(run.port.take_calls(), "members 0,1; begin_newcomer; settle_workers") << "and a new segment of the journal";
}

TEST(Newcomers, TrainingGoesOnWhereNewcomersComeWithoutEnd) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) { made.options.keeps_journal = false; });
  run.to_training();
  run.coordinator->requested(0, 1);
  run.finish_leases();
  run.coordinator->requested(0, 1);
  run.coordinator->lost(1, "gone");
  run.coordinator->arrived(1);
  run.finish_leases();
  run.coordinator->requested(0, 1);
  int prepared = 0;
  for (; run.coordinator->state() != State::training && prepared < 100; ++prepared) {
    run.until(Task::prepare_newcomer);
    if (run.coordinator->state() == State::training) break;
    run.coordinator->arrived(1);
    run.answer(TaskOutcome::refused);
  }
  EXPECT_EQ(prepared, 2) << "as many as there are workers";
  run.finish_leases();
  run.until(Task::prepare_newcomer);
  EXPECT_EQ(run.coordinator->task(), Task::prepare_newcomer) << "after a lease it is another newcomer's turn";
}

TEST(Newcomers, RefusedNewcomerIsReplaced) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->lost(1, "gone");
  run.coordinator->arrived(1);
  run.until(Task::prepare_newcomer);
  run.port.take_calls();
  run.answer(TaskOutcome::refused);
  EXPECT_EQ(run.port.take_calls(), "replace 1");
  EXPECT_EQ(run.coordinator->state(), State::training);
}

TEST(Newcomers, InterruptedRunDoesNotWaitForNewcomers) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->lost(1, "gone");
  run.coordinator->arrived(1);
  run.until(Task::prepare_newcomer);
  const auto order = run.port.last.number;
  run.coordinator->interrupted();
  EXPECT_EQ(run.coordinator->task(), Task::dismiss_workers);
  EXPECT_FALSE(run.coordinator->awaits(order));
  run.answer({.number = order, .newest = {}});
  EXPECT_FALSE(run.coordinator->members().has(1));
}

TEST(Newcomers, NoneJoinsWithoutACheckpoint) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->lost(1, "gone");
  run.coordinator->arrived(1);
  run.until(Task::take_state);
  run.answer();
  run.coordinator->written(core::fail(core::Errc::no_space, "full"));
  EXPECT_EQ(run.coordinator->state(), State::training);
}

// ---- emergency

class Emergency : public testing::Test {
 protected:
  Emergency() {
    run_.to_training();
    run_.step();
    run_.coordinator->requested(0, 1);
    run_.coordinator->requested(1, 1);
    run_.coordinator->lost(1, "gone");
  }
  void found(Step steps) { run_.answer({.number = run_.port.last.number, .newest = 0, .steps = steps}); }
  void taken(Step steps) { run_.answer({.number = run_.port.last.number, .newest = {}, .steps = steps}); }
  TestedRun run_{Kind::shared};
};

TEST_F(Emergency, SavesTheLastStepThatAllHaveEnded) {
  EXPECT_EQ(run_.coordinator->task(), Task::find_newest);
  run_.port.take_calls();
  found(1);
  taken(1);
  taken(1);
  EXPECT_EQ(run_.port.take_calls(), "take_model; take_state; rewound 1; write");
  run_.write();
  expect_peer_lost(run_, "step 2, the last that all had ended, is saved; go on");
}

TEST_F(Emergency, BeginsAgainWhenTheNewestHasTakenAnotherStep) {
  found(1);
  taken(2);
  EXPECT_EQ(run_.coordinator->task(), Task::find_newest);
  found(2);
  taken(2);
  taken(3);
  EXPECT_EQ(run_.coordinator->task(), Task::find_newest);
  EXPECT_EQ(run_.port.checkpoints, 1) << "the first one of the run";
}

TEST_F(Emergency, KeepsTheCheckpointThatHasEverything) {
  found(0);
  expect_peer_lost(run_, "the newest checkpoint has all that they did");
}

TEST_F(Emergency, EndsWhenNoWorkerIsLeft) {
  run_.coordinator->lost(0, "gone too");
  expect_peer_lost(run_, "no worker is left");
}

TEST_F(Emergency, EndsWithTheReasonWhenNothingCanBeSaved) {
  found(1);
  taken(1);
  taken(1);
  run_.coordinator->written(core::fail(core::Errc::no_space, "full"));
  expect_peer_lost(run_, "what they held could not be saved");
}

TEST_F(Emergency, AnErrorOnItsWayNamesTheLossFirst) {
  run_.coordinator->fail({core::Errc::timeout, "no snapshot"});
  expect_peer_lost(run_, "worker 1 is lost: gone; the others of a strategy cannot take a step without it; no snapshot");
}

TEST(EmergencyOfAProgram, EndsWithItsErrorAndNoAdviceToGoOn) {
  TestedRun run(Kind::shared);
  run.to_training();
  run.step();
  run.coordinator->member_failed(2, {core::Errc::program, "worker 1: boom"});
  EXPECT_TRUE(run.coordinator->in_emergency());
  run.coordinator->member_failed(1, {core::Errc::program, "worker 0: boom"});
  ASSERT_TRUE(run.port.error);
  EXPECT_EQ(run.port.error->code, core::Errc::program);
  EXPECT_EQ(run.port.error->message,
            "worker 1: boom; the others of a strategy cannot take a step without it; no worker is left");
}

TEST(EmergencyDuringAPause, BeginsWhenTheTaskIsAnswered) {
  TestedRun run(Kind::shared);
  run.to_training();
  run.train();
  run.until(Task::take_model);
  run.coordinator->lost(1, "gone");
  EXPECT_EQ(run.coordinator->task(), Task::take_model);
  run.answer();
  EXPECT_EQ(run.coordinator->task(), Task::find_newest);
}

TEST(EmergencyDuringAPause, LossAfterTheLastStepIsNoError) {
  TestedRun run(Kind::shared, [](TestedRun& made) { made.options.epochs = 1; });
  run.to_training();
  run.train();
  run.until(Task::collect_records);
  run.coordinator->lost(1, "gone");
  run.answer();
  EXPECT_TRUE(run.coordinator->ended());
  EXPECT_FALSE(run.port.error);
}

}  // namespace
}  // namespace troupe::coordination
