// A coordinator and its port: evaluations beside training, what waits for their scores, and evaluations of a resumed run.
#include "tests/strategies/coordination/recording_port.hpp"

namespace troupe::coordination {
namespace {

using State = Coordinator::State;

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

/// Worker 0 trains alone until the evaluation beside training has begun; it has a lease then.
void train_until_evaluated(TestedRun& run) {
  while (run.port.take_calls().find("evaluate_beside") == std::string::npos) {
    if (run.coordinator->state() != State::training) {
      run.proceed();
    } else {
      run.write();
      run.coordinator->requested(0, 1);
      run.finish_leases();
    }
  }
  while (run.coordinator->state() != State::training) run.proceed();
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

  const auto later = beside(Kind::on_demand, {.steps = 2});
  later->to_training();
  train_until_evaluated(*later);
  later->finish_leases();
  later->port.take_calls();
  later->coordinator->checkpoint_requested();
  EXPECT_EQ(later->coordinator->state(), State::training) << "the score is not known";
  later->coordinator->scored({.loss = 1, .accuracy = 0.5});
  EXPECT_EQ(later->port.take_calls(), "take_model");
  later->answer();
  EXPECT_EQ(later->coordinator->task(), Task::take_state);
  EXPECT_EQ(later->coordinator->watch().state().evaluations, 1U);
}

/// Neither a checkpoint that is due nor a newcomer stops the workers before the score is known.
TEST(EvaluationBesideTraining, WorkersDoNotStandStillForACheckpoint) {
  const auto run = std::make_unique<TestedRun>(Kind::on_demand, [](TestedRun& made) {
    made.options.evaluates_beside = true;
    made.options.evaluations = {.steps = 8};
    made.options.checkpoints = {.steps = 3};
    made.options.keeps_journal = false;
    made.options.epochs = 3;
  });
  run->to_training();
  train_until_evaluated(*run);
  run->write();
  const auto begun = run->done;
  run->coordinator->lost(1, "gone");
  run->coordinator->arrived(1);
  for (int k = 0; k < 3; ++k) {
    if (run->port.granted.empty()) run->coordinator->requested(0, 1);
    ASSERT_FALSE(run->port.granted.empty()) << k;
    run->finish_leases();
    ASSERT_EQ(run->coordinator->state(), State::training) << k;
  }
  EXPECT_EQ(run->done, begun + 3);
  run->port.take_calls();
  run->coordinator->scored({.loss = 1, .accuracy = 0.5});
  run->until(Task::prepare_newcomer);
  EXPECT_TRUE(run->port.take_calls().starts_with("take_model; take_state; write;"));
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

/// A user who interrupts may end the process before a long evaluation has ended: what was trained is saved first, then with the score.
TEST(EvaluationBesideTraining, AnInterruptSavesBeforeItAwaitsTheScore) {
  const auto run = beside(Kind::on_demand, {.steps = 2}, 5);
  run->to_training();
  train_until_evaluated(*run);
  run->finish_leases();
  run->port.take_calls();
  run->coordinator->interrupted();
  run->until(Task::await_evaluation);
  EXPECT_EQ(run->port.take_calls(), "dismiss_workers; take_model; take_state; write; await_evaluation");
  run->coordinator->scored({.loss = 1, .accuracy = 0.5});
  while (!run->coordinator->ended()) run->proceed();
  EXPECT_EQ(run->port.take_calls(), "take_state; write; collect_records; ended");
  EXPECT_EQ(run->coordinator->watch().state().evaluations, 1U);
  ASSERT_TRUE(run->port.error);
  EXPECT_EQ(run->port.error->code, core::Errc::interrupted);
}

/// A user who interrupts asks for no evaluation, and the last model of a run that stops is evaluated once: after its workers are dismissed.
TEST(EvaluationBesideTraining, NoneBeginsAfterAReasonToStop) {
  for (const bool interrupted : {true, false}) {
    for (const std::int64_t steps : {3, 4}) {  // within an epoch, and at its end
      const auto run = beside(Kind::on_demand, {.steps = steps}, 5);
      run->options.watch.target_accuracy = 0.5;
      run->coordinator = std::make_unique<Coordinator>(run->port, run->options, run->leases);
      run->to_training();
      while (run->coordinator->state() != State::performing || run->coordinator->task() != Task::await_evaluation) {
        run->train();
        if (run->coordinator->task() != Task::await_evaluation) run->proceed();
      }
      run->port.take_calls();
      if (interrupted) run->coordinator->interrupted();
      run->coordinator->scored({.loss = 1, .accuracy = interrupted ? 0.1 : 0.5});
      while (!run->coordinator->ended()) run->proceed();
      // At its end an epoch's evaluation is due all the same.
      const bool evaluated = !interrupted || steps == TestedRun::kLeases;
      EXPECT_EQ(run->port.take_calls(),
                fmt::format("{}dismiss_workers; take_model; {}take_state; write; collect_records; ended",
                            interrupted ? "" : "stops by target_accuracy; ", evaluated ? "evaluate; " : ""))
          << steps;
    }
  }
}

/// The score of an earlier model must be in the emergency's checkpoint, too. Its state is copied before the wait: members may give up.
TEST(EvaluationBesideTraining, AnEmergencySavesItsScore) {
  const auto run = beside(Kind::shared, {.steps = 2});
  run->options.watch.target_accuracy = 0.5;
  run->coordinator = std::make_unique<Coordinator>(run->port, run->options, run->leases);
  run->to_training();
  run->train();
  run->until(Task::take_model);
  run->answer();
  ASSERT_EQ(run->coordinator->state(), State::training);
  for (const WorkerId worker : {0U, 1U}) run->coordinator->requested(worker, 1);
  run->finish_leases();  // one more step of both
  run->port.take_calls();
  run->coordinator->lost(1, "gone");
  const auto answer = [&](std::optional<WorkerId> newest) {
    run->answer({.number = run->port.last.number, .newest = newest, .steps = 2});
  };
  answer({});
  answer(0);
  answer({});
  answer({});
  EXPECT_EQ(run->port.take_calls(),
            "removed 1; warn; find_newest; take_model; take_state; rewound 2; await_evaluation");
  run->coordinator->scored({.loss = 1, .accuracy = 0.5});
  EXPECT_EQ(run->coordinator->watch().state().evaluations, 1U);
  run->answer();
  EXPECT_EQ(run->port.take_calls(), "write");
  run->write();
  EXPECT_EQ(run->port.take_calls(), "ended") << "it is the loss that ends the run";
  ASSERT_TRUE(run->port.error);
  EXPECT_EQ(run->port.error->code, core::Errc::peer_lost);
}

/// After how many leases of the whole run it is evaluated, if it is interrupted after `first` of them and resumed.
std::vector<std::uint64_t> evaluated_after(CheckpointPeriod period, std::uint64_t first, bool beside_training) {
  std::vector<std::uint64_t> evaluated;
  std::uint64_t before = 0;
  WatchState watched;
  std::string leases;
  for (const bool resumed : {false, true}) {
    TestedRun run(Kind::on_demand, [&](TestedRun& made) {
      made.options.resumed = resumed;
      made.options.evaluations = period;
      made.options.evaluates_beside = beside_training;
      made.options.epochs = 5;
      made.options.steps_before = before;
      made.options.watched = watched;
    });
    if (resumed) {
      EXPECT_TRUE(run.leases->restore(leases));
      run.coordinator = std::make_unique<Coordinator>(run.port, run.options, run.leases);
    }
    run.coordinator->begin(run.initial_members);
    std::uint64_t counted = watched.evaluations;
    while (!run.coordinator->ended()) {
      if (run.coordinator->state() == State::training) {
        run.coordinator->requested(0, 1);
        run.finish_leases();
        if (!resumed && run.done == first) run.coordinator->interrupted();
      } else {
        run.proceed();
      }
      run.coordinator->scored({.loss = 1, .accuracy = 0.5});
      if (std::exchange(counted, run.coordinator->watch().state().evaluations) !=
          run.coordinator->watch().state().evaluations)
        evaluated.push_back(std::max(run.coordinator->watch().state().last_at.leases,
                                     run.coordinator->watch().state().extra_at.leases));
    }
    watched = run.coordinator->watch().state();
    leases = run.leases->state();
    before = run.done;
  }
  return evaluated;
}

/// All decisions follow from the evaluations: they must come where they would have come without the interruption.
TEST(ResumedEvaluations, ComeWhereTheyWouldHaveCome) {
  for (const bool beside_training : {false, true}) {
    for (std::uint64_t first = 1; first < 20; ++first) {
      auto every_three = evaluated_after({.steps = 3}, first, beside_training);
      EXPECT_EQ(every_three, (std::vector<std::uint64_t>{3, 6, 9, 12, 15, 18, 20})) << first;
      EXPECT_EQ(evaluated_after({.epochs = 2}, first, beside_training), (std::vector<std::uint64_t>{8, 16, 20}))
          << first;
    }
  }
}

}  // namespace
}  // namespace troupe::coordination
