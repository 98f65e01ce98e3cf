/// What follows from the scores of evaluations: the best model, early stopping, targets, and the falls of a plateau schedule. A pure state
/// machine; its state is in every checkpoint, so that a resumed run decides as if it had not been interrupted. One thread.
#pragma once

#include <cstdint>
#include <limits>

namespace troupe::coordination {

/// What ends a run before its last epoch, other than an interrupt or an error.
enum class EarlyStop : std::uint8_t { none, max_seconds, target_accuracy, target_loss, patience, max_epochs };
/// "max_seconds", …; none: "".
[[nodiscard]] const char* name(EarlyStop why) noexcept;

/// The model on the split that decides: the validation split, or without one the test split.
struct Score {
  double loss = std::numeric_limits<double>::quiet_NaN();
  double accuracy = std::numeric_limits<double>::quiet_NaN();  ///< 0 to 1
};

/// Where the run was when the evaluated model was copied, earlier sessions included.
struct EvaluatedAt {
  std::uint64_t leases = 0;  ///< done
  double epoch = 0;          ///< epochs done, fractional
  double train_s = 0;        ///< seconds of training
};

enum class Monitor : std::uint8_t { accuracy, loss };

struct WatchOptions {
  Monitor monitor = Monitor::accuracy;  ///< which of the two must improve
  double target_accuracy = 0;           ///< ends the run; 0: none
  double target_loss = 0;               ///< ends the run; 0: none
  std::uint64_t patience = 0;           ///< evaluations in a row without a better score that end the run; 0: never
  std::uint64_t lr_patience = 0;        ///< the same for a fall of the learning rate; 0: never
  double lr_gamma = 0.1;                ///< factor of a fall
};

struct WatchState {
  std::uint64_t evaluations = 0;  ///< all
  std::uint64_t since_best = 0;   ///< evaluations that count
  std::uint64_t since_fall = 0;   ///< the same since the latest fall or best score, while there are falls
  double lr_factor = 1;           ///< product of all falls
  Score best{};                   ///< of all evaluations
  EvaluatedAt best_at{};
  Score to_beat{};         ///< the best of the evaluations that count: what ends a row without a better score
  EvaluatedAt last_at{};   ///< of the latest evaluation that counts
  EvaluatedAt extra_at{};  ///< of the latest one that does not count
  EvaluatedAt begun_at{};  ///< of an evaluation that has begun and not ended; 0 leases: none
  double target_s =
      std::numeric_limits<double>::quiet_NaN();  ///< training time to the target; not a number: not reached
  /// Which that was, as in WatchOptions; not a number: not known, of a checkpoint of an older program.
  double target_accuracy = std::numeric_limits<double>::quiet_NaN();
  double target_loss = std::numeric_limits<double>::quiet_NaN();
};

/// The state in which a run goes on whose scores are of another split from now on: evaluations come where they would have come, and the
/// learning rate stays.
[[nodiscard]] WatchState on_another_split(const WatchState& state);

class EvaluationWatch {
 public:
  struct Verdict {
    bool improved = false;             ///< this model is the best so far
    bool falls = false;                ///< the learning rate falls: WatchState::lr_factor has changed
    EarlyStop stop = EarlyStop::none;  ///< a target or the end of patience
  };

  /// `state`: of an earlier session. If the target is another one now, its time is forgotten; if no plateau schedule runs, the rate's falls
  /// are, too.
  explicit EvaluationWatch(const WatchOptions& options, const WatchState& state = {});

  /// A score that is not a number never improves anything. `counts`: the evaluation was due. One that was made because the run ended there
  /// moves no counter, as a run that is resumed would not have made it: only its target and the best model are looked at. A second
  /// evaluation without training in between (of a resumed run) does not count: only its target does.
  [[nodiscard]] Verdict look(const Score& score, const EvaluatedAt& at, bool counts = true);
  /// The evaluation of a model has begun; look() ends it.
  void begin(const EvaluatedAt& at) { state_.begun_at = at; }
  /// Whether an evaluation of a model after so many leases has begun, and not ended.
  [[nodiscard]] bool awaits(std::uint64_t leases) const noexcept {
    return leases > 0 && state_.begun_at.leases == leases;
  }
  /// Whether a model after so many leases has been evaluated.
  [[nodiscard]] bool has_seen(std::uint64_t leases) const noexcept {
    return has_counted(leases) || (state_.evaluations > 0 && state_.extra_at.leases == leases);
  }
  /// The same, by an evaluation that counts.
  [[nodiscard]] bool has_counted(std::uint64_t leases) const noexcept {
    return state_.evaluations > 0 && state_.last_at.leases == leases;
  }
  /// What has ended the run by now, of its target and its patience.
  [[nodiscard]] EarlyStop stopped() const noexcept;
  [[nodiscard]] const WatchState& state() const noexcept { return state_; }

 private:
  [[nodiscard]] bool better(const Score& score, const Score& than) const noexcept;
  [[nodiscard]] EarlyStop target(const Score& score) const noexcept;

  WatchOptions options_;
  WatchState state_;
};

}  // namespace troupe::coordination
