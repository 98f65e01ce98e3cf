// A coordinator and its port: when it evaluates, and what follows from the scores. Beside training: evaluations_beside_test.cpp.
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

/// A round counts as a whole: a worker that asks for more leases ahead does not shift the evaluation, and with it the falls of a plateau.
TEST(Coordinator, InStepEvaluationsComeAfterTheSameRoundWhoeverAsksFirst) {
  for (const std::uint32_t ahead : {1U, 2U}) {
    TestedRun run(Kind::in_step, [](TestedRun& made) { made.options.evaluations = {.steps = 2}; });
    run.to_training();
    run.coordinator->requested(0, ahead);
    run.coordinator->requested(1, 2);
    run.finish_leases();
    if (ahead == 1) run.coordinator->requested(0, 1);
    EXPECT_EQ(run.done, 2U) << ahead;
    run.until(Task::evaluate);
    EXPECT_EQ(run.coordinator->state(), State::performing) << ahead;
  }
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

}  // namespace
}  // namespace troupe::coordination
