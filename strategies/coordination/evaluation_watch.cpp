#include "strategies/coordination/evaluation_watch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::coordination {

const char* name(EarlyStop why) noexcept {
  switch (why) {
    case EarlyStop::none: return "";
    case EarlyStop::max_seconds: return "max_seconds";
    case EarlyStop::target_accuracy: return "target_accuracy";
    case EarlyStop::target_loss: return "target_loss";
    case EarlyStop::patience: return "patience";
    case EarlyStop::max_epochs: return "max_epochs";
  }
  return "";
}

WatchState on_another_split(const WatchState& state) {
  return {.lr_factor = state.lr_factor, .last_at = state.last_at, .begun_at = state.begun_at};
}

EvaluationWatch::EvaluationWatch(const WatchOptions& options, const WatchState& state)
    : options_(options), state_(state) {
  const auto other = [](double now, double then) { return !std::isnan(then) && now != then; };
  if (other(options_.target_accuracy, state_.target_accuracy) || other(options_.target_loss, state_.target_loss))
    state_.target_s = std::numeric_limits<double>::quiet_NaN();
  if (options_.lr_patience > 0) return;
  state_.lr_factor = 1;
  state_.since_fall = 0;
}

/// Comparisons with a number that is none are false.
bool EvaluationWatch::better(const Score& score, const Score& than) const noexcept {
  const bool accuracy = options_.monitor == Monitor::accuracy;
  const double now = accuracy ? score.accuracy : -score.loss;
  const double before = accuracy ? than.accuracy : -than.loss;
  return now > before || (std::isnan(before) && !std::isnan(now));
}

EarlyStop EvaluationWatch::target(const Score& score) const noexcept {
  if (options_.target_accuracy > 0 && score.accuracy >= options_.target_accuracy) return EarlyStop::target_accuracy;
  if (options_.target_loss > 0 && score.loss <= options_.target_loss) return EarlyStop::target_loss;
  return EarlyStop::none;
}

EarlyStop EvaluationWatch::stopped() const noexcept {
  if (!std::isnan(state_.target_s)) {
    // Of two targets the best score tells which one it was; where that is the best of the other quantity, the first one is named.
    const auto by_best = target(state_.best);
    if (by_best != EarlyStop::none) return by_best;
    if (options_.target_accuracy > 0) return EarlyStop::target_accuracy;
    if (options_.target_loss > 0) return EarlyStop::target_loss;
  }
  return options_.patience > 0 && state_.since_best >= options_.patience ? EarlyStop::patience : EarlyStop::none;
}

EvaluationWatch::Verdict EvaluationWatch::look(const Score& score, const EvaluatedAt& at, bool counts) {
  Verdict verdict{.stop = target(score)};
  state_.begun_at = {};
  if (verdict.stop != EarlyStop::none && std::isnan(state_.target_s)) {
    state_.target_s = at.train_s;
    state_.target_accuracy = options_.target_accuracy;
    state_.target_loss = options_.target_loss;
  }
  if (has_seen(at.leases)) return verdict;
  ++state_.evaluations;
  verdict.improved = better(score, state_.best);
  if (verdict.improved) {
    state_.best = score;
    state_.best_at = at;
  }
  (counts ? state_.last_at : state_.extra_at) = at;
  if (!counts) return verdict;
  if (better(score, state_.to_beat)) {
    state_.to_beat = score;
    state_.since_best = state_.since_fall = 0;
    return verdict;
  }
  ++state_.since_best;
  if (options_.lr_patience > 0 && ++state_.since_fall >= options_.lr_patience) {
    verdict.falls = true;
    // Every lease has a factor above 0.
    state_.lr_factor = std::clamp(state_.lr_factor * options_.lr_gamma, std::numeric_limits<double>::min(),
                                  std::numeric_limits<double>::max());
    state_.since_fall = 0;
  }
  if (verdict.stop == EarlyStop::none && options_.patience > 0 && state_.since_best >= options_.patience)
    verdict.stop = EarlyStop::patience;
  return verdict;
}

}  // namespace troupe::coordination
