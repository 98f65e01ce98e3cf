// What follows from scores: best model, patience, targets, falls of the learning rate. Expectations are counted by hand.
#include "strategies/coordination/evaluation_watch.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace troupe::coordination {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// One letter per accuracy: b best, f falls, p patience, a target accuracy, l target loss, '.' nothing.
std::string verdicts(EvaluationWatch& watch, const std::vector<double>& accuracies, double loss = 1) {
  std::string text;
  auto at = watch.state().last_at;
  for (const double accuracy : accuracies) {
    at.leases += 10;
    at.train_s += 2;
    const auto verdict = watch.look({loss, accuracy}, at);
    if (verdict.improved) text += 'b';
    if (verdict.falls) text += 'f';
    if (verdict.stop == EarlyStop::patience) text += 'p';
    if (verdict.stop == EarlyStop::target_accuracy) text += 'a';
    if (verdict.stop == EarlyStop::target_loss) text += 'l';
    text += '.';
  }
  return text;
}

TEST(EvaluationWatch, TheBestModelIsStrictlyBetterThanAllBefore) {
  EvaluationWatch watch({});
  EXPECT_EQ(verdicts(watch, {0.1, 0.3, 0.3, 0.2, 0.4}), "b.b...b.");
  EXPECT_EQ(watch.state().best.accuracy, 0.4);
  EXPECT_EQ(watch.state().best_at.leases, 50U);
  EXPECT_EQ(watch.state().evaluations, 5U);
}

TEST(EvaluationWatch, TheLossCanDecideInstead) {
  EvaluationWatch watch({.monitor = Monitor::loss});
  std::string text;
  std::uint64_t granted = 0;
  for (const double loss : {3.0, 2.0, 2.5, kNaN, 1.0}) text += watch.look({loss, 0}, {++granted}).improved ? 'b' : '.';
  EXPECT_EQ(text, "bb..b");
}

TEST(EvaluationWatch, PatienceCountsEvaluationsWithoutABetterScore) {
  EvaluationWatch watch({.patience = 3});
  EXPECT_EQ(verdicts(watch, {0.5, 0.4, 0.4, 0.6, 0.6, 0.5, 0.1}), "b...b...p.");
}

TEST(EvaluationWatch, APlateauLowersTheRateAgainAndAgain) {
  EvaluationWatch watch({.lr_patience = 2, .lr_gamma = 0.5});
  EXPECT_EQ(verdicts(watch, {0.5, 0.5, 0.5, 0.5, 0.5, 0.6, 0.5, 0.5}), "b..f..f.b..f.");
  EXPECT_DOUBLE_EQ(watch.state().lr_factor, 0.125);
}

/// A lease with a factor of 0 is refused, and a checkpoint with it is no checkpoint.
TEST(EvaluationWatch, TheFactorNeverBecomesZeroOrInfinite) {
  for (const double gamma : {1e-30, 1e30}) {
    EvaluationWatch watch({.lr_patience = 1, .lr_gamma = gamma});
    static_cast<void>(verdicts(watch, std::vector<double>(30, 0.5)));
    EXPECT_GT(watch.state().lr_factor, 0) << gamma;
    EXPECT_TRUE(std::isfinite(watch.state().lr_factor)) << gamma;
  }
}

TEST(EvaluationWatch, TargetsStopAndTheTimeOfTheFirstIsKept) {
  EvaluationWatch accuracy({.target_accuracy = 0.5});
  EXPECT_EQ(verdicts(accuracy, {0.4, 0.5, 0.6}), "b.ba.ba.");
  EXPECT_EQ(accuracy.state().target_s, 4);
  EvaluationWatch loss({.target_loss = 1});
  EXPECT_EQ(verdicts(loss, {0.4}, 1.1), "b.");
  EXPECT_TRUE(std::isnan(loss.state().target_s));
  EXPECT_EQ(verdicts(loss, {0.5}, 1.0), "bl.");
  EXPECT_EQ(loss.state().target_s, 4);
}

TEST(EvaluationWatch, TheTimeToATargetIsOfThatTarget) {
  EvaluationWatch watch({.target_accuracy = 0.5});
  EXPECT_EQ(verdicts(watch, {0.4, 0.6}), "b.ba.");
  EXPECT_EQ(EvaluationWatch({.target_accuracy = 0.5}, watch.state()).state().target_s, 4);
  for (const auto& options : {WatchOptions{.target_accuracy = 0.75}, {.target_accuracy = 0.5, .target_loss = 1}, {}}) {
    EvaluationWatch resumed(options, watch.state());
    EXPECT_TRUE(std::isnan(resumed.state().target_s));
  }
  EvaluationWatch resumed({.target_accuracy = 0.75}, watch.state());
  EXPECT_EQ(verdicts(resumed, {0.7, 0.8}), "b.ba.");
  EXPECT_EQ(resumed.state().target_s, 8);
  auto of_older = watch.state();
  of_older.target_accuracy = of_older.target_loss = kNaN;
  EXPECT_EQ(EvaluationWatch({.target_accuracy = 0.75}, of_older).state().target_s, 4) << "it does not say of which";
}

TEST(EvaluationWatch, ANumberThatIsNoneNeitherImprovesNorReachesATarget) {
  EvaluationWatch watch({.target_accuracy = 0.1, .target_loss = 10, .patience = 2});
  EXPECT_EQ(verdicts(watch, {kNaN, kNaN}, kNaN), ".p.");
}

/// A resumed run evaluates the model of its checkpoint once more.
TEST(EvaluationWatch, ASecondLookAtTheSameModelCountsNothingButTheTarget) {
  EvaluationWatch watch({.patience = 1});
  EXPECT_EQ(verdicts(watch, {0.5}), "b.");
  EvaluationWatch resumed({.target_accuracy = 0.5, .patience = 1}, watch.state());
  const auto verdict = resumed.look({1, 0.5}, watch.state().last_at);
  EXPECT_FALSE(verdict.improved);
  EXPECT_EQ(verdict.stop, EarlyStop::target_accuracy);
  EXPECT_EQ(resumed.state().evaluations, 1U);
}

/// The evaluation where a run stops is one more: only the target and the best model are looked at.
TEST(EvaluationWatch, OneThatDoesNotCountMovesNoCounter) {
  EvaluationWatch watch({.target_accuracy = 0.9, .patience = 3, .lr_patience = 2});
  EXPECT_EQ(verdicts(watch, {0.5, 0.5}), "b..");
  const auto before = watch.state();
  EXPECT_EQ(watch.look({1, 0.4}, {.leases = 25}, false).stop, EarlyStop::none);
  EXPECT_TRUE(watch.look({1, 0.8}, {.leases = 26}, false).improved);
  EXPECT_EQ(watch.look({1, 0.9}, {.leases = 27, .train_s = 7}, false).stop, EarlyStop::target_accuracy);
  EXPECT_EQ(watch.state().target_s, 7);
  EXPECT_EQ(watch.state().best_at.leases, 27U);
  EXPECT_EQ(watch.state().evaluations, 5U);
  EXPECT_EQ(watch.state().since_best, before.since_best);
  EXPECT_EQ(watch.state().since_fall, before.since_fall);
  EXPECT_EQ(watch.state().last_at.leases, before.last_at.leases);
  EXPECT_TRUE(watch.has_seen(27));
  EXPECT_FALSE(watch.has_counted(27));
  EXPECT_EQ(verdicts(watch, {0.6, 0.6, 0.6}), "..f.") << "0.6 is better than 0.5, and no model to keep";
}

TEST(EvaluationWatch, WithoutAPlateauNoFallIsInForce) {
  EvaluationWatch plateau({.lr_patience = 1, .lr_gamma = 0.1});
  EXPECT_EQ(verdicts(plateau, {0.5, 0.5, 0.5}), "b.f.f.");
  EvaluationWatch constant({}, plateau.state());
  EXPECT_EQ(constant.state().lr_factor, 1);
  EXPECT_EQ(verdicts(constant, {0.5, 0.5, 0.5}), "...");
  EvaluationWatch again({.lr_patience = 2, .lr_gamma = 0.1}, constant.state());
  EXPECT_EQ(verdicts(again, {0.5, 0.5}), ".f.");
  EXPECT_DOUBLE_EQ(again.state().lr_factor, 0.1);
}

TEST(EvaluationWatch, AnotherSplitHasNoScoresYet) {
  EvaluationWatch watch({.lr_patience = 1, .lr_gamma = 0.5});
  EXPECT_EQ(verdicts(watch, {0.9, 0.8}), "b.f.");
  EvaluationWatch other({.patience = 2, .lr_patience = 2, .lr_gamma = 0.5}, on_another_split(watch.state()));
  EXPECT_FALSE(other.has_seen(20));
  EXPECT_EQ(verdicts(other, {0.1}), "b.");
  EXPECT_EQ(other.state().best.accuracy, 0.1);
  EXPECT_EQ(other.state().evaluations, 1U);
  EXPECT_EQ(other.state().last_at.leases, 30U) << "evaluations come where they would have come";
  EXPECT_DOUBLE_EQ(other.state().lr_factor, 0.5);
}

TEST(EvaluationWatch, ResumedItDecidesAsIfNotInterrupted) {
  const std::vector<double> scores{0.1, 0.3, 0.2, 0.3, 0.25, 0.4, 0.4, 0.4, 0.1, 0.5, 0.2};
  const WatchOptions options{.target_accuracy = 0.5, .patience = 3, .lr_patience = 2, .lr_gamma = 0.1};
  EvaluationWatch whole(options);
  const auto expected = verdicts(whole, scores);
  for (std::size_t cut = 0; cut <= scores.size(); ++cut) {
    const auto middle = scores.begin() + static_cast<std::ptrdiff_t>(cut);
    EvaluationWatch before(options);
    auto text = verdicts(before, {scores.begin(), middle});
    EvaluationWatch after(options, before.state());
    text += verdicts(after, {middle, scores.end()});
    EXPECT_EQ(text, expected) << cut;
  }
}

}  // namespace
}  // namespace troupe::coordination
