// A run that limits stop and that goes on afterwards decides as one that was never stopped: where it is evaluated, when the learning rate
// falls, and when patience ends.
#include <algorithm>
#include <functional>

#include "tests/strategies/coordination/recording_port.hpp"

namespace troupe::coordination {
namespace {

using State = Coordinator::State;

/// What ends a session, and what it changes.
struct Session {
  std::uint32_t epochs = 0;
  double seconds = 0;
  std::uint32_t of_epochs = 0;  // 0: as many as the run has at last
  std::optional<std::uint64_t> lr_patience{};
};

/// A run over all its sessions.
struct Life {
  std::vector<std::uint64_t> evaluated;  // after so many leases
  std::vector<double> factors;           // of the learning rate, by lease
  std::string kept;                      // what was said of the scores
  WatchState watched;
  EarlyStop stop = EarlyStop::none;  // of the last session
  std::uint64_t done = 0;            // leases
};

using ScoreAfter = std::function<double(std::uint64_t leases)>;

/// A step of both workers takes a second.
void train_step(TestedRun& run, Life& life) {
  for (const auto worker : run.coordinator->members().list()) run.coordinator->requested(worker, 1);
  life.factors.insert(life.factors.end(), run.port.granted.size(), run.leases->lr_factor());
  run.port.time += std::chrono::seconds(1);
  run.finish_leases();
}

Life live(const CoordinatorOptions& options, const std::vector<Session>& sessions, const ScoreAfter& accuracy) {
  Life life;
  double trained_s = 0;
  std::string leases;
  for (const auto& session : sessions) {
    TestedRun run(Kind::in_step, [&](TestedRun& made) {
      made.options = options;
      made.options.needs = needs_of(Kind::in_step);
      made.options.workers = TestedRun::kWorkers;
      made.options.max_epochs = session.epochs;
      if (session.of_epochs > 0) made.options.epochs = session.of_epochs;
      made.options.max_s = session.seconds;
      made.options.watch.lr_patience = session.lr_patience.value_or(options.watch.lr_patience);
      made.options.resumed = !leases.empty();
      made.options.steps_before = life.done;
      made.options.trained_before_s = trained_s;
      made.options.watched = life.watched;
      made.port.keeps_best = true;
    });
    if (!leases.empty()) {
      EXPECT_TRUE(run.leases->restore(leases));
      run.coordinator = std::make_unique<Coordinator>(run.port, run.options, run.leases);
    }
    auto& coordinator = *run.coordinator;
    const auto score = [&](std::uint64_t at) { return Score{.loss = 1, .accuracy = accuracy(at)}; };
    std::optional<std::uint64_t> beside;
    coordinator.begin(run.initial_members);
    while (!coordinator.ended()) {
      const auto before = run.port.calls.size();
      if (coordinator.state() == State::training) {
        train_step(run, life);
      } else if (coordinator.state() == State::performing && coordinator.task() == Task::evaluate) {
        life.evaluated.push_back(run.leases->done_count());
        run.answer({.number = run.port.last.number, .score = score(life.evaluated.back()), .newest = {}});
      } else {
        if (beside && coordinator.state() == State::performing && coordinator.task() == Task::await_evaluation)
          coordinator.scored(score(*std::exchange(beside, std::nullopt)));
        run.proceed();
      }
      for (auto k = before; k < run.port.calls.size(); ++k) {
        if (run.port.calls[k] == "evaluate_beside") beside = run.leases->done_count();
        if (run.port.calls[k].starts_with("judged best")) life.kept += fmt::format("{} ", run.leases->done_count());
      }
      if (beside && coordinator.state() == State::training && run.leases->done_count() > *beside)
        coordinator.scored(score(*std::exchange(beside, std::nullopt)));
    }
    EXPECT_FALSE(run.port.error);
    life.watched = coordinator.watch().state();
    life.stop = coordinator.early_stop();
    life.done += run.done;
    trained_s = coordinator.trained_s();
    leases = run.leases->state();
  }
  return life;
}

/// Nine epochs, evaluated every second one.
CoordinatorOptions nine_epochs() {
  CoordinatorOptions options;
  options.epochs = 9;
  options.evaluations = {.epochs = 2};
  return options;
}

constexpr std::uint64_t kEpoch = TestedRun::kLeases;
double never_better(std::uint64_t) { return 0.5; }

/// The evaluation at a stop is one more: it moves none of the others.
TEST(LimitedRun, IsEvaluatedWhereItWouldHaveBeen) {
  const auto whole = live(nine_epochs(), {{}}, never_better);
  EXPECT_EQ(whole.evaluated, (std::vector<std::uint64_t>{2 * kEpoch, 4 * kEpoch, 6 * kEpoch, 8 * kEpoch, 9 * kEpoch}));
  const auto parts = live(nine_epochs(), {{.epochs = 1}, {.epochs = 3}, {}}, never_better);
  auto expected = whole.evaluated;
  expected.insert(expected.begin(), kEpoch);
  expected.insert(expected.begin() + 2, 3 * kEpoch);
  EXPECT_EQ(parts.evaluated, expected);
}

TEST(LimitedRun, PlateauFallsAtTheSameLease) {
  for (const bool beside : {false, true}) {
    for (const std::int64_t period : {1, 2}) {
      SCOPED_TRACE(fmt::format("{} {}", beside ? "beside" : "paused", period));
      auto options = nine_epochs();
      options.evaluations = {.epochs = period};
      options.evaluates_beside = beside;
      options.watch.lr_patience = 1;
      options.watch.lr_gamma = 0.5;
      const auto whole = live(options, {{}}, never_better);
      EXPECT_LT(whole.factors.back(), 1) << "the rate must fall for this test to test anything";
      for (const std::uint32_t first : {1U, 2U, 3U})
        EXPECT_EQ(live(options, {{.epochs = first}, {.epochs = first + 2}, {}}, never_better).factors, whole.factors)
            << first;
      // Within an epoch, too: each step of the two workers takes a second.
      for (const double first : {1.0, 3.0, 4.0, 7.0})
        EXPECT_EQ(live(options, {{.seconds = first}, {.seconds = first + 4}, {}}, never_better).factors, whole.factors)
            << first << " s";
    }
  }
}

TEST(LimitedRun, PatienceEndsAtTheSameLease) {
  auto options = nine_epochs();
  options.watch.patience = 2;
  const auto whole = live(options, {{}}, never_better);
  EXPECT_EQ(whole.stop, EarlyStop::patience);
  EXPECT_EQ(whole.done, 6 * kEpoch);
  for (const std::uint32_t first : {1U, 3U, 5U}) {
    const auto parts = live(options, {{.epochs = first}, {}}, never_better);
    EXPECT_EQ(parts.stop, EarlyStop::patience) << first;
    EXPECT_EQ(parts.done, whole.done) << first;
  }
  for (const double first : {1.0, 5.0, 9.0}) {
    const auto parts = live(options, {{.seconds = first}, {}}, never_better);
    EXPECT_EQ(parts.stop, EarlyStop::patience) << first << " s";
    EXPECT_EQ(parts.done, whole.done) << first << " s";
  }
}

/// Its target and its patience end a run again at each resume, before any step, until they are other ones.
TEST(LimitedRun, WhatHasEndedItEndsItAgain) {
  const auto better_from_lease_6 = [](std::uint64_t leases) { return leases >= 6 ? 0.9 : 0.5; };
  auto options = nine_epochs();
  options.evaluations = {.steps = 2};  // within epochs of 4
  options.watch.target_accuracy = 0.8;
  const auto reached = live(options, {{}}, better_from_lease_6);
  EXPECT_EQ(reached.stop, EarlyStop::target_accuracy);
  EXPECT_EQ(reached.done, 6U);
  const auto again = live(options, {{}, {}, {}}, better_from_lease_6);
  EXPECT_EQ(again.stop, EarlyStop::target_accuracy);
  EXPECT_EQ(again.done, 6U);

  options.watch.target_accuracy = 0;
  options.watch.patience = 3;
  const auto impatient = live(options, {{}}, never_better);
  EXPECT_EQ(impatient.stop, EarlyStop::patience);
  EXPECT_EQ(live(options, {{}, {}, {}}, never_better).done, impatient.done);
}

/// The limit and the end of patience meet: an uninterrupted run would have ended here.
TEST(LimitedRun, PatienceThatEndsAtTheLimitEndsTheResumedRun) {
  auto options = nine_epochs();
  options.watch.patience = 2;
  const auto parts = live(options, {{.epochs = 6}, {}}, never_better);
  EXPECT_EQ(parts.stop, EarlyStop::patience);
  EXPECT_EQ(parts.done, 6 * kEpoch);
}

/// The best model may be the one at the stop. It is kept, and what follows is compared as if it had not been seen.
TEST(LimitedRun, TheModelAtTheStopMayBeTheBest) {
  const auto accuracy = [](std::uint64_t leases) {
    return leases == 3 * kEpoch ? 0.9 : 0.1 * static_cast<double>(std::min(leases, 6 * kEpoch)) / kEpoch;
  };
  auto options = nine_epochs();
  options.watch.lr_patience = 1;
  options.watch.lr_gamma = 0.5;
  const auto whole = live(options, {{}}, accuracy);
  const auto parts = live(options, {{.epochs = 3}, {}}, accuracy);
  EXPECT_EQ(parts.factors, whole.factors);
  EXPECT_EQ(parts.watched.best.accuracy, 0.9);
  EXPECT_EQ(parts.watched.best_at.leases, 3 * kEpoch);
  EXPECT_EQ(whole.kept, "8 16 24 ");
  EXPECT_EQ(parts.kept, "8 12 ");
}

/// Resumed twice at one limit: one model counts once.
TEST(LimitedRun, IsEvaluatedOnceAtALimitThatIsNotRaised) {
  auto options = nine_epochs();
  options.watch.lr_patience = 1;
  options.watch.lr_gamma = 0.5;
  const auto whole = live(options, {{}}, never_better);
  const auto at_limit = live(options, {{.epochs = 5}, {.epochs = 5}, {}}, never_better);
  EXPECT_EQ(at_limit.factors, whole.factors);
  EXPECT_EQ(at_limit.watched.evaluations, whole.watched.evaluations + 1);
}

/// The last model of a run is evaluated in any case. If the run then gets more epochs, that was one more, too.
TEST(LimitedRun, WithMoreEpochsDecidesAsIfTheyHadBeenPlanned) {
  auto options = nine_epochs();
  options.watch.lr_patience = 1;
  options.watch.lr_gamma = 0.5;
  const auto whole = live(options, {{}}, never_better);
  EXPECT_EQ(live(options, {{.of_epochs = 3}, {.of_epochs = 7}, {}}, never_better).factors, whole.factors);
}

/// What a plateau has made of the rate ends with it: another schedule, and a later plateau, begin at the whole rate.
TEST(LimitedRun, FallsDoNotOutliveTheirPlateau) {
  auto options = nine_epochs();
  options.evaluations = {.epochs = 1};
  options.watch.lr_gamma = 0.1;
  const auto life = live(
      options, {{.epochs = 3, .lr_patience = 1}, {.epochs = 6, .lr_patience = 0}, {.lr_patience = 2}}, never_better);
  std::vector<double> by_epoch;
  for (std::size_t lease = 0; lease < life.factors.size(); lease += kEpoch) by_epoch.push_back(life.factors[lease]);
  EXPECT_EQ(by_epoch, (std::vector<double>{1, 1, 0.1, 1, 1, 1, 1, 1, 0.1}));
}

}  // namespace
}  // namespace troupe::coordination
