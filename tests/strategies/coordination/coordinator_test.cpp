// A coordinator and its port: leases, limits, checkpoints, journal segments, the end. Members that come and go are in members_test.cpp.
#include "tests/strategies/coordination/recording_port.hpp"

namespace troupe::coordination {
namespace {

using State = Coordinator::State;
using Calls = std::string;

std::chrono::nanoseconds operator""_s(unsigned long long seconds) { return std::chrono::seconds(seconds); }

TEST(Coordinator, RunBeginsWithACheckpointOnDisk) {
  TestedRun run(Kind::on_demand);
  run.coordinator->requested(0, 2);
  run.coordinator->begin(run.initial_members);
  EXPECT_EQ(run.port.take_calls(), "take_model");
  run.answer();
  EXPECT_EQ(run.port.take_calls(), "take_state");
  run.answer();
  EXPECT_EQ(run.port.take_calls(), "write");
  EXPECT_EQ(run.coordinator->state(), State::awaiting_disk);
  run.write();
  EXPECT_EQ(run.port.take_calls(), "grant 0 2");
}

TEST(Coordinator, AResumedRunTrainsAtOnce) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) { made.options.resumed = true; });
  run.coordinator->requested(1, 1);
  run.coordinator->begin(run.initial_members);
  EXPECT_EQ(run.port.take_calls(), "grant 1 1");
}

TEST(Coordinator, WhatHadEndedARunEndsItAgainBeforeAnyStep) {
  for (const auto why : {EarlyStop::patience, EarlyStop::max_seconds}) {
    for (const bool longer : {false, true}) {
      TestedRun run(Kind::on_demand, [&](TestedRun& made) {
        made.options.resumed = true;
        made.options.trained_before_s = 10;
        made.options.watched.evaluations = made.options.watched.since_best = 3;
        if (why == EarlyStop::patience) made.options.watch.patience = longer ? 4 : 3;
        if (why == EarlyStop::max_seconds) made.options.max_s = longer ? 11 : 10;
      });
      run.coordinator->requested(1, 1);
      run.coordinator->begin(run.initial_members);
      EXPECT_EQ(run.coordinator->state() == State::training, longer) << name(why);
      if (longer) continue;
      while (!run.coordinator->ended()) {
        EXPECT_TRUE(run.leases->quiet()) << name(why);
        run.proceed();
      }
      EXPECT_EQ(run.port.take_calls().find("grant"), std::string::npos) << name(why);
      EXPECT_EQ(run.coordinator->early_stop(), why);
      EXPECT_FALSE(run.port.error);
    }
  }
}

TEST(Coordinator, ModelIsEvaluatedAtEveryEpochsEnd) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.train();
  EXPECT_EQ(run.done, 4U);
  while (run.coordinator->state() != State::training) run.proceed();
  const auto calls = run.port.take_calls();
  EXPECT_TRUE(calls.ends_with("grant 1 1; take_model; evaluate")) << calls;
  run.train();
  run.port.take_calls();
  while (!run.coordinator->ended()) run.proceed();
  EXPECT_EQ(run.port.take_calls(), "take_model; evaluate; take_state; write; collect_records; ended");
  EXPECT_EQ(run.done, 8U);
  EXPECT_FALSE(run.port.error);
}

TEST(Coordinator, ALeaseRunsToItsEndBeforeTrainingPauses) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->requested(0, 1);
  run.coordinator->requested(1, 1);
  run.coordinator->interrupted();
  run.coordinator->requested(0, 1);
  EXPECT_EQ(run.port.take_calls(), "grant 0 1; grant 1 1");
  EXPECT_EQ(run.coordinator->state(), State::training);
  run.finish_leases();
  EXPECT_EQ(run.port.take_calls(), "dismiss_workers");
  while (!run.coordinator->ended()) run.proceed();
  EXPECT_EQ(run.port.take_calls(), "take_model; take_state; write; collect_records; ended");
  ASSERT_TRUE(run.port.error);
  EXPECT_EQ(run.port.error->code, core::Errc::interrupted);
}

TEST(Coordinator, InterruptionAfterTheLastStepHasNoEffect) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) { made.options.epochs = 1; });
  run.to_training();
  run.train();
  run.coordinator->interrupted();
  while (!run.coordinator->ended()) run.proceed();
  EXPECT_FALSE(run.port.error);
}

TEST(Coordinator, InterruptionWhileRecordsAreCollectedHasNoEffect) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) { made.options.epochs = 1; });
  run.to_training();
  run.train();
  run.until(Task::collect_records);
  run.coordinator->interrupted();
  run.answer();
  EXPECT_TRUE(run.coordinator->ended());
  EXPECT_FALSE(run.port.error);
}

/// The reason to stop comes while the model is taken: workers hand in what they hold, and the model is taken once more.
TEST(Coordinator, StopDuringAnEvaluationDismissesWorkersAndEvaluatesAgain) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.train();
  run.until(Task::evaluate);
  run.coordinator->interrupted();
  run.port.take_calls();
  while (!run.coordinator->ended()) run.proceed();
  EXPECT_EQ(run.port.take_calls(), "dismiss_workers; take_model; evaluate; take_state; write; collect_records; ended");
}

TEST(Coordinator, TheTimeLimitCountsTrainingOnly) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) { made.options.max_s = 10; });
  run.coordinator->begin(run.initial_members);
  run.port.time += 100_s;
  while (run.coordinator->state() != State::training) run.proceed();
  run.port.time += 6_s;
  run.train();
  EXPECT_EQ(run.coordinator->trained_s(), 6);
  run.port.time += 100_s;
  while (run.coordinator->state() != State::training) run.proceed();
  EXPECT_EQ(run.coordinator->trained_s(), 6);
  run.port.time += 4_s;
  run.coordinator->ticked();
  EXPECT_EQ(run.coordinator->task(), Task::dismiss_workers);
}

TEST(Coordinator, TheTimeLimitIsAnnouncedAndTheModelEvaluated) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) { made.options.max_s = 10; });
  run.to_training();
  run.coordinator->requested(0, 1);
  run.finish_leases();
  run.port.take_calls();
  run.port.time += 10_s;
  run.coordinator->ticked();
  EXPECT_EQ(run.coordinator->early_stop(), EarlyStop::max_seconds);
  while (!run.coordinator->ended()) run.proceed();
  EXPECT_EQ(run.port.take_calls(),
            "stops by max_seconds; dismiss_workers; take_model; evaluate; take_state; write; collect_records; ended");
  EXPECT_FALSE(run.port.error);
}

TEST(Coordinator, AnEpochLimitEndsTheRunWithAnEvaluationAndACheckpoint) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) {
    made.options.epochs = 3;
    made.options.max_epochs = 1;
  });
  run.to_training();
  run.train();
  run.port.take_calls();
  while (!run.coordinator->ended()) run.proceed();
  EXPECT_EQ(run.coordinator->early_stop(), EarlyStop::max_epochs);
  EXPECT_EQ(run.coordinator->leases().epoch(), 0U);
  EXPECT_TRUE(run.coordinator->leases().epoch_done());
  EXPECT_FALSE(run.port.error);
}

TEST(Coordinator, AnEpochLimitAtTheLastEpochStopsNothingEarly) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) {
    made.options.epochs = 1;
    made.options.max_epochs = 1;
  });
  run.to_training();
  run.train();
  while (!run.coordinator->ended()) run.proceed();
  EXPECT_EQ(run.coordinator->early_stop(), EarlyStop::none);
}

TEST(Coordinator, AnInterruptAtTheTimeLimitEvaluatesNothing) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) { made.options.max_s = 10; });
  run.to_training();
  run.coordinator->requested(0, 1);
  run.port.time += 10_s;
  run.coordinator->ticked();
  run.coordinator->interrupted();
  run.finish_leases();
  run.port.take_calls();
  while (!run.coordinator->ended()) run.proceed();
  EXPECT_EQ(run.port.take_calls(), "take_model; take_state; write; collect_records; ended");
}

TEST(Coordinator, ALimitReachedInTheLastStepStopsNothingEarly) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) {
    made.options.max_s = 10;
    made.options.epochs = 1;
    made.options.watch.target_accuracy = 0.5;
  });
  run.to_training();
  run.step();
  for (const WorkerId worker : {0U, 1U}) run.coordinator->requested(worker, 1);
  run.port.time += 10_s;
  run.finish_leases();
  run.until(Task::evaluate);
  run.answer({.number = run.port.last.number, .score = {.loss = 1, .accuracy = 0.5}, .newest = {}});
  while (!run.coordinator->ended()) run.proceed();
  EXPECT_EQ(run.coordinator->early_stop(), EarlyStop::none);
  EXPECT_EQ(run.port.take_calls().find("stops by"), std::string::npos);
}

TEST(Coordinator, ARequestedCheckpointIsWrittenAndTrainingGoesOn) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->requested(0, 1);
  run.coordinator->checkpoint_requested();
  run.coordinator->requested(0, 1);
  EXPECT_EQ(run.port.take_calls(), "grant 0 1") << "the second is a step after the checkpoint";
  run.finish_leases();
  run.until(Task::take_state);
  run.answer();
  EXPECT_EQ(run.port.take_calls(), "take_model; take_state; write; grant 0 1");
  run.coordinator->checkpoint_requested();
  EXPECT_EQ(run.port.take_calls(), "") << "one at a time";
  run.finish_leases();
  run.write();
  EXPECT_EQ(run.port.take_calls(), "take_model");
}

TEST(Coordinator, ACheckpointRequestedInAPauseIsWritten) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->journal_full();
  run.coordinator->checkpoint_requested();
  EXPECT_EQ(run.coordinator->task(), Task::settle_workers);
  run.port.take_calls();
  run.until(Task::take_state);
  EXPECT_TRUE(run.port.take_calls().ends_with("take_model; take_state"));
}

TEST(Coordinator, AnInterruptSaysHowToGoOn) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->interrupted();
  while (!run.coordinator->ended()) run.proceed();
  EXPECT_EQ(run.port.error->message, "interrupted; go on");
}

TEST(Coordinator, ACheckpointIsWrittenWhileTrainingGoesOn) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) {
    made.options.checkpoints.steps = 1;
    made.options.epochs = 9;
  });
  run.to_training();
  run.coordinator->requested(0, 3);
  EXPECT_EQ(run.port.take_calls(), "grant 0 1") << "the second is a step after the checkpoint that is due";
  run.finish_leases();
  run.until(Task::take_state);
  run.answer();
  EXPECT_EQ(run.port.take_calls(), "take_model; take_state; write; grant 0 2") << "one checkpoint at a time";
  run.write();
  run.finish_leases();
  EXPECT_EQ(run.port.take_calls(), "take_model") << "it became due while the one before was written";
}

TEST(Coordinator, ACheckpointThatCannotBeWrittenIsTakenAgain) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) {
    made.options.checkpoints.steps = 1;
    made.options.epochs = 9;
  });
  run.to_training();
  run.coordinator->requested(0, 2);
  run.finish_leases();
  run.until(Task::take_state);
  ASSERT_EQ(run.coordinator->task(), Task::take_state);
  run.answer();
  run.coordinator->written(core::fail(core::Errc::no_space, "full"));
  EXPECT_FALSE(run.coordinator->ended());
  run.coordinator->requested(0, 2);
  run.finish_leases();
  run.until(Task::take_state);
  EXPECT_EQ(run.coordinator->task(), Task::take_state);
}

TEST(Coordinator, FailedCheckpointBeforeTheLastOneIsNoError) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) {
    made.options.checkpoints.steps = 1;
    made.options.epochs = 9;
  });
  run.to_training();
  run.coordinator->requested(0, 2);
  run.finish_leases();
  run.until(Task::take_state);
  ASSERT_EQ(run.coordinator->task(), Task::take_state);
  run.coordinator->interrupted();
  run.answer();
  run.coordinator->written(core::fail(core::Errc::no_space, "full"));
  EXPECT_EQ(run.coordinator->task(), Task::dismiss_workers);
  run.until(Task::find_newest);  // to the end
  ASSERT_TRUE(run.coordinator->ended());
  ASSERT_TRUE(run.port.error);
  EXPECT_EQ(run.port.error->code, core::Errc::interrupted) << run.port.error->message;
}

TEST(Coordinator, EpochThatALossEndsDuringAPauseIsEvaluated) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) {
    made.options.checkpoints.steps = 2;
    made.options.epochs = 1;
  });
  run.leases = std::make_shared<data::LeaseScheduler>(
      *data::LeaseScheduler::create({.epoch_size = 10, .epochs = 1, .batches = {4, 1}, .drop_tail = true}));
  run.coordinator = std::make_unique<Coordinator>(run.port, run.options, run.leases);
  run.to_training();
  run.coordinator->requested(0, 3);
  run.finish_leases();
  run.until(Task::take_state);
  ASSERT_EQ(run.coordinator->task(), Task::take_state);
  EXPECT_FALSE(run.leases->epoch_done());
  run.coordinator->lost(1, "gone");
  EXPECT_TRUE(run.leases->epoch_done()) << "what is left is too little for worker 0";
  run.port.take_calls();
  run.answer();
  run.write();
  EXPECT_EQ(run.coordinator->task(), Task::dismiss_workers);
  run.until(Task::evaluate);
  EXPECT_EQ(run.coordinator->task(), Task::evaluate);
  run.until(Task::find_newest);
  EXPECT_TRUE(run.coordinator->ended());
  EXPECT_FALSE(run.port.error);
}

TEST(Coordinator, ALastCheckpointThatCannotBeWrittenIsAnError) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->interrupted();
  run.until(Task::take_state);
  run.answer();
  run.coordinator->written(core::fail(core::Errc::no_space, "full"));
  run.until(Task::take_model);
  ASSERT_TRUE(run.coordinator->ended());
  ASSERT_TRUE(run.port.error);
  EXPECT_EQ(run.port.error->code, core::Errc::no_space);
}

TEST(Coordinator, ASegmentOfTheJournalBeginsBetweenTwoSteps) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->requested(0, 1);
  run.port.take_calls();
  run.coordinator->journal_full();
  EXPECT_EQ(run.port.take_calls(), "");
  run.finish_leases();
  while (run.coordinator->state() != State::training) run.proceed();
  EXPECT_EQ(run.port.take_calls(), "settle_workers; take_members; collect_records; begin_segment");
}

TEST(Coordinator, ASegmentBeginsAnewWithTheMembersThatRemain) {
  TestedRun run(Kind::on_demand);
  run.to_training();
  run.coordinator->journal_full();
  run.until(Task::collect_records);
  run.coordinator->lost(1, "gone");
  run.port.take_calls();
  run.answer();
  EXPECT_EQ(run.port.take_calls(), "settle_workers");
}

TEST(Coordinator, AnAnswerCountsOnce) {
  TestedRun run(Kind::on_demand);
  run.coordinator->begin(run.initial_members);
  const auto first = run.port.last.number;
  run.answer();
  run.answer({.number = first, .newest = {}});
  EXPECT_EQ(run.coordinator->task(), Task::take_state);
}

}  // namespace
}  // namespace troupe::coordination
