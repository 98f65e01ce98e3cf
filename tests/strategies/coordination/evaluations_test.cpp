// A coordinator and its port: when it evaluates, while training is paused and beside it, and what follows from the scores.
#include "tests/strategies/coordination/recording_port.hpp"

namespace troupe::coordination {
namespace {

using State = Coordinator::State;

TEST(Coordinator, TheTargetEndsTheRunAtAnEpochsEnd) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) { made.options.watch.target_accuracy = 0.5; });
  run.to_training();
  run.train();
  run.until(Task::evaluate);
  run.port.take_calls();
  run.answer({.number = run.port.last.number, .score = {.loss = 1, .accuracy = 0.5}, .newest = {}});
  EXPECT_EQ(run.port.take_calls(), "stops by target_accuracy; dismiss_workers");
  while (!run.coordinator->ended()) run.proceed();
  EXPECT_FALSE(run.port.error);
  EXPECT_EQ(run.done, 4U);
}

/// Every third lease pauses training for an evaluation; the model is evaluated within the epoch.
TEST(Coordinator, EvaluationsComeAfterSoManySteps) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) { made.options.evaluations = {.steps = 3}; });
  run.to_training();
  std::vector<std::uint64_t> evaluated_after;
  while (!run.coordinator->ended()) {
    run.train();
    if (run.coordinator->state() == State::performing && run.coordinator->task() == Task::evaluate)
      evaluated_after.push_back(run.done);
    run.proceed();
  }
  EXPECT_EQ(evaluated_after, (std::vector<std::uint64_t>{3, 6, 8}));  // and at the end
}

/// An epoch's end without an evaluation goes on.
TEST(Coordinator, EvaluationsMaySkipEpochs) {
  TestedRun run(Kind::in_step, [](TestedRun& made) {
    made.options.evaluations = {.epochs = 2};
    made.options.epochs = 5;
  });
  run.to_training();
  std::vector<std::uint64_t> evaluated_after;
  while (!run.coordinator->ended()) {
    run.train();
    if (run.coordinator->state() == State::performing && run.coordinator->task() == Task::evaluate)
      evaluated_after.push_back(run.done / TestedRun::kLeases);
    run.proceed();
  }
  EXPECT_EQ(evaluated_after, (std::vector<std::uint64_t>{2, 4, 5}));
}

/// The patience of the run ends within an epoch: the workers are dismissed, and the last model is evaluated.
TEST(Coordinator, PatienceEndsTheRunWithinAnEpoch) {
  TestedRun run(Kind::on_demand, [](TestedRun& made) {
    made.options.evaluations = {.steps = 1};
    made.options.watch.patience = 2;
    made.port.keeps_best = true;
  });
  run.to_training();
  std::string calls;
  while (!run.coordinator->ended()) {
    if (run.coordinator->state() == State::training) {
      run.step();
    } else if (run.coordinator->state() == State::performing && run.coordinator->task() == Task::evaluate) {
      run.answer({.number = run.port.last.number, .score = {.loss = 1, .accuracy = 0.5}, .newest = {}});
    } else {
      run.proceed();
    }
  }
  EXPECT_EQ(run.coordinator->early_stop(), EarlyStop::patience);
  EXPECT_EQ(run.done, 3U);  // the best, and two that are not better
  calls = run.port.take_calls();
  EXPECT_NE(calls.find("judged best"), std::string::npos);
  EXPECT_TRUE(calls.ends_with(
      "stops by patience; dismiss_workers; take_model; evaluate; take_state; write; collect_records; ended"))
      << calls;
}

/// Leases before the fall have the old rate, those after it the new one.
TEST(Coordinator, APlateauLowersTheRateOfLaterLeases) {
  TestedRun run(Kind::in_step, [](TestedRun& made) {
    made.options.evaluations = {.epochs = 1};
    made.options.epochs = 4;
    made.options.watch.lr_patience = 1;
    made.options.watch.lr_gamma = 0.5;
  });
  run.to_training();
  std::vector<double> factors;
  while (!run.coordinator->ended()) {
    if (run.coordinator->state() == State::training) {
      factors.push_back(run.leases->lr_factor());
      run.train();
    } else if (run.coordinator->state() == State::performing && run.coordinator->task() == Task::evaluate) {
      run.answer({.number = run.port.last.number, .score = {.loss = 1, .accuracy = 0.5}, .newest = {}});
    } else {
      run.proceed();
    }
  }
  EXPECT_EQ(factors, (std::vector<double>{1, 1, 0.5, 0.25}));
}

std::unique_ptr<TestedRun> beside(Kind kind, CheckpointPeriod period, std::uint32_t epochs = 2) {
  return std::make_unique<TestedRun>(kind, [&](TestedRun& made) {
    made.options.evaluates_beside = true;
    made.options.evaluations = period;
    made.options.epochs = epochs;
    made.options.checkpoints = {};
  });
}

TEST(EvaluationBesideTraining, WorkersGoOnMeanwhile) {
  const auto run = beside(Kind::on_demand, {.steps = 2});
  run->to_training();
  run->train();
  run->until(Task::take_model);
  run->port.take_calls();
  run->answer();
  EXPECT_EQ(run->coordinator->state(), State::training);
  EXPECT_TRUE(run->port.take_calls().starts_with("evaluate_beside"));
  run->coordinator->scored({.loss = 1, .accuracy = 0.5});
  EXPECT_EQ(run->coordinator->state(), State::training);
  EXPECT_EQ(run->coordinator->watch().state().evaluations, 1U);
  EXPECT_EQ(run->coordinator->watch().state().best_at.leases, 2U);
}

/// One at a time: training pauses for the next one until the former has ended. The last model of the run is evaluated alone.
TEST(EvaluationBesideTraining, TheNextOneWaitsForTheFormer) {
  const auto run = beside(Kind::on_demand, {.steps = 2});
  run->to_training();
  run->train();
  run->until(Task::take_model);
  run->answer();
  run->train();
  run->until(Task::await_evaluation);
  ASSERT_EQ(run->coordinator->task(), Task::await_evaluation);
  run->coordinator->scored({.loss = 1, .accuracy = 0.5});
  run->port.take_calls();
  run->answer();
  EXPECT_TRUE(run->port.take_calls().starts_with("evaluate_beside"));
  EXPECT_EQ(run->coordinator->state(), State::training);
  std::string calls;
  while (!run->coordinator->ended()) {
    run->train();
    if (run->coordinator->state() == State::performing && run->coordinator->task() == Task::await_evaluation)
      run->coordinator->scored({.loss = 1, .accuracy = 0.5});
    run->proceed();
  }
  calls = run->port.take_calls();
  EXPECT_TRUE(calls.ends_with("take_model; await_evaluation; evaluate; take_state; write; collect_records; ended"))
      << calls;
  EXPECT_EQ(run->coordinator->watch().state().evaluations, 4U);
}

/// The score of an earlier model must be in a checkpoint; the evaluation of its own model is repeated after a resume.
TEST(EvaluationBesideTraining, ACheckpointHasTheScoresBeforeIt) {
  const auto run = beside(Kind::on_demand, {.steps = 2});
  run->to_training();
  run->train();
  run->until(Task::take_model);
  run->coordinator->checkpoint_requested();
  run->answer();
  EXPECT_EQ(run->coordinator->task(), Task::take_state) << "of the model that is being evaluated";
  EXPECT_EQ(run->coordinator->watch().state().begun_at.leases, 2U);
  while (run->coordinator->state() != State::training) run->proceed();
  run->write();
  run->coordinator->requested(0, 1);
  run->finish_leases();
  run->coordinator->checkpoint_requested();
  run->until(Task::await_evaluation);
  ASSERT_EQ(run->coordinator->task(), Task::await_evaluation);
  run->coordinator->scored({.loss = 1, .accuracy = 0.5});
  run->answer();
  EXPECT_EQ(run->coordinator->task(), Task::take_state);
  EXPECT_EQ(run->coordinator->watch().state().begun_at.leases, 4U) << "the next one is due here, and of this model";
  EXPECT_EQ(run->coordinator->watch().state().evaluations, 1U);
}

TEST(EvaluationBesideTraining, AResumedRunRepeatsTheOneThatHadNotEnded) {
  auto run = beside(Kind::on_demand, {.steps = 100});
  run->to_training();
  run->step();
  run->coordinator->interrupted();
  const auto leases = run->leases->state();
  WatchState watched;
  watched.begun_at = {.leases = run->leases->done_count()};
  const auto resumed = std::make_unique<TestedRun>(Kind::on_demand, [&](TestedRun& made) {
    made.options.resumed = true;
    made.options.evaluates_beside = true;
    made.options.evaluations = {.steps = 100};
    made.options.watched = watched;
  });
  ASSERT_TRUE(resumed->leases->restore(leases));
  resumed->coordinator->begin(resumed->initial_members);
  EXPECT_EQ(resumed->port.take_calls(), "take_model");
  resumed->answer();
  EXPECT_EQ(resumed->port.take_calls(), "evaluate_beside");
  EXPECT_EQ(resumed->coordinator->state(), State::training);
}

TEST(EvaluationBesideTraining, AScoreMayStopTheRun) {
  const auto run = std::make_unique<TestedRun>(Kind::on_demand, [](TestedRun& made) {
    made.options.evaluates_beside = true;
    made.options.watch.target_accuracy = 0.5;
    made.options.epochs = 9;
  });
  run->to_training();
  run->train();
  run->until(Task::take_model);
  run->answer();
  run->until(Task::take_state);
  while (run->coordinator->state() != State::training) run->proceed();
  run->coordinator->requested(0, 1);
  run->port.take_calls();
  run->coordinator->scored({.loss = 1, .accuracy = 0.5});
  EXPECT_EQ(run->port.take_calls(), "stops by target_accuracy");
  run->finish_leases();
  EXPECT_EQ(run->port.take_calls(), "dismiss_workers");
  while (!run->coordinator->ended()) run->proceed();
  EXPECT_EQ(run->done, 5U);
  EXPECT_FALSE(run->port.error);
}

/// In step all workers of a run must fall at the same lease, whenever the score arrives: when the next evaluation begins.
TEST(EvaluationBesideTraining, ARateFallsWhenTheNextEvaluationBegins) {
  for (const bool early : {true, false}) {
    const auto run = std::make_unique<TestedRun>(Kind::in_step, [](TestedRun& made) {
      made.options.evaluates_beside = true;
      made.options.epochs = 5;
      made.options.watch.lr_patience = 1;
      made.options.watch.lr_gamma = 0.5;
    });
    run->to_training();
    std::vector<double> factors;
    while (!run->coordinator->ended()) {
      if (run->coordinator->state() == State::training) {
        if (early) run->coordinator->scored({.loss = 1, .accuracy = 0.5});
        factors.push_back(run->leases->lr_factor());
        run->train();
      } else {
        if (run->coordinator->state() == State::performing && run->coordinator->task() == Task::await_evaluation)
          run->coordinator->scored({.loss = 1, .accuracy = 0.5});
        run->proceed();
      }
    }
    EXPECT_EQ(factors, (std::vector<double>{1, 1, 1, 0.5, 0.25})) << early;
  }
}

}  // namespace
}  // namespace troupe::coordination
