/// The interface of a coordination strategy to the rest of the program: its two rules, its needs, and where its model is. Plain
/// values and pure functions; thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "strategies/host/port.hpp"
#include "strategies/host/rule.hpp"
#include "strategies/search/option_space.hpp"
#include "strategies/search/properties.hpp"

namespace troupe::strategies {

/// The run for which a strategy is made. `seed` is the run's.
struct RunShape {
  std::uint32_t workers = 1;
  std::uint32_t servers = 1;
  std::uint64_t seed = 1;
  core::OptimizerStep
      optimizer{};  ///< the run's, as its training settings prescribe; the learning rate comes with each step
  bool epsilon_inside = false;  ///< train.rmsprop_epsilon: also of the servers' optimizer
  double ema = 0;               ///< train.ema: above 0, the model is a moving average of the parameters
};

/// The place of the model that is evaluated and saved.
enum class ModelHome : std::uint8_t {
  center,      ///< the servers' shards: Needs::model_slot of each
  any_worker,  ///< every worker's parameters are equal between two steps
  weighted,    ///< Σ a_i x_i / Σ a_i over the workers' parameters, with a_i = WorkerHost::weight()
};

/// What a checkpoint saves of the workers, besides the model.
enum class WorkerState : std::uint8_t {
  replicated,  ///< parameters and optimizer state are equal everywhere: one copy
  per_worker,  ///< each worker's optimizer state differs: one copy per worker
  discarded,   ///< on resume workers join anew with the centre's parameters and fresh optimizer state
};

/// An action that a worker repeats every `steps` of its local steps, and the option that sets `steps`.
struct Period {
  std::string key;
  Step steps = 1;
};

/// A rule that gave other bits before: recordings with an arithmetic (experiment::RunPlan) below `since` cannot be replayed. `key`: the
/// option that chose the rule.
struct ChangedArithmetic {
  int since = 1;
  std::string key;
};

/// The ports and slots that the rules use. Read once, when the run is assembled.
struct Needs {
  bool servers = false;
  bool group = false;
  bool subgroups = false;  ///< some collectives are of fewer workers than all
  bool peers = false;
  bool in_step = false;    ///< every worker takes the same number of steps, so leases are equal shares
  std::size_t backup = 0;  ///< in step: number of backup workers; a step completes without so many of the slowest
  ModelHome model = ModelHome::center;
  /// kCenter: the model is the centre, or the workers' parameters. Else an average of them (averaged.hpp): a server_state(k), or one of
  /// worker_slots. If no checkpoint has that average, it begins as a copy of what it follows, so that it is a model at every moment.
  Slot model_slot = kCenter;
  WorkerState worker_state = WorkerState::discarded;
  /// With WorkerState::replicated: the saved state changes only at the end of a step, when all its exchanges have ended. Within a
  /// step the state of any worker can be read, even while the other workers wait for a lost one.
  bool whole_steps = false;
  std::vector<Slot> worker_slots{};  ///< in addition to params, grads and the optimizer's own
  std::uint8_t server_states = 0;    ///< state vectors per shard
  std::string
      server_state_of{};  ///< the optimizer ("adam") of the states: only the same one restores them; empty: scratch only
  bool rounds = true;     ///< a 16-bit wire has vectors to round; false: only masters travel, in float32
  bool local_steps =
      false;  ///< what follows each step is one optimizer step of the worker's own; no other reads gradients
  std::vector<Period> periods{};      ///< of exchanges; a period longer than the run never comes: see warnings()
  std::vector<std::string> doubts{};  ///< about options that are valid and do not do what they are for: see warnings()
  std::optional<ChangedArithmetic> changed_arithmetic{};

  [[nodiscard]] bool averages() const noexcept { return model_slot != kCenter; }
  /// The vector of each shard or worker that the model is made of.
  [[nodiscard]] Slot model_vector() const noexcept {
    return model == ModelHome::center || averages() ? model_slot : kParams;
  }

  /// Whether a worker may join during a run, with x = c and a fresh rule: the model must be the centre, and no collective may be
  /// shared. With leases on demand it may join at any moment. In step it joins between two steps that all members have ended, with
  /// no request open or in flight: otherwise rounds would count it in which it has no part. The coordinator enforces this.
  [[nodiscard]] bool takes_newcomers() const noexcept { return model == ModelHome::center && !group; }
};

/// The ports of a worker's host, for a `port` that implements all of them: only those that the strategy needs.
template <class Port>
[[nodiscard]] WorkerPorts worker_ports(Port& port, const Needs& needs) noexcept {
  return {port, needs.servers ? &port : nullptr, needs.group ? &port : nullptr, needs.peers ? &port : nullptr};
}

/// One strategy with its options, for one run. Immutable. Makes one rule per member.
class Strategy {
 public:
  virtual ~Strategy() = default;
  [[nodiscard]] virtual Needs needs() const = 0;
  [[nodiscard]] virtual std::unique_ptr<WorkerRule> worker() const = 0;
  /// Null if needs().servers is false.
  [[nodiscard]] virtual std::unique_ptr<ServerRule> server() const = 0;
};

/// The part of an optimizer's usual learning rate with which a strategy trains, and why, in words that follow "x 0.3: ".
struct RateShare {
  double factor = 1;
  std::string why{};
};

/// One row of the registry: all that the program knows of a strategy. `make` checks the options against the run's shape: Errc::config
/// names the key and what to do. The schedule search refuses a strategy without an option space or properties.
struct StrategyInfo {
  std::string name;
  std::string summary;  ///< one line for `troupe strategies`
  std::function<void(core::Schema&)> add_options;
  std::function<core::Result<std::unique_ptr<Strategy>>(const core::Config&, const RunShape&)> make;
  /// The options that the schedule search draws for a run of this shape. `make` accepts each combination.
  std::function<OptionSpace(const RunShape&)> option_space{};
  /// What must hold with these options. It reads the options itself: numbers that `make` got wrong are then found.
  std::function<Properties(const core::Config&, const RunShape&)> properties{};
  /// The only optimizer of local steps with which `make` accepts a run; none: any.
  std::optional<core::OptimizerKind> local_optimizer{};
  /// What `train.lr = "auto"` takes of the usual rate, for a run of this shape. None: all of it.
  std::function<RateShare(const core::Config&, const RunShape&)> rate_share{};
  /// Names of the options that change numbers only, never which exchange comes when: those that a replay may change.
  std::vector<std::string> replayable_options{};
};

/// The share where workers add full steps to one centre: all of them move it, and each from a point that the others have left meanwhile.
/// With w workers 0.6 / w, as measured with 2 to 512 on LeNet and momentum 0.9 (docs/staleness-at-scale.md); with one all.
[[nodiscard]] RateShare share_of_pushes(std::uint32_t workers);

}  // namespace troupe::strategies
