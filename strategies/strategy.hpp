/// What a coordination strategy is to the rest of the program: two halves, what they need, and where the model is.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "strategies/host/half.hpp"

namespace troupe::strategies {

/// Who a strategy is made for. `seed` is the run's.
struct Company {
  std::uint32_t workers = 1;
  std::uint32_t servers = 1;
  std::uint64_t seed = 1;
  core::OptimizerStep
      optimizer{};  ///< the run's, as its training settings prescribe it; the learning rate is each step's
};

/// Where the model is that is evaluated and saved.
enum class ModelHome : std::uint8_t {
  center,      ///< the servers' shards: Needs::model_slot of each
  any_worker,  ///< every worker's parameters are equal between two steps
  weighted,    ///< Σ a_i x_i / Σ a_i over the workers' parameters, with a_i = WorkerHost::weight()
};

/// What a checkpoint keeps of the workers, beside the model.
enum class WorkerState : std::uint8_t {
  replicated,  ///< parameters and optimizer state are equal everywhere: one copy
  per_worker,  ///< each worker's optimizer state differs: all of them
  discarded,   ///< on resume workers join anew with the centre's parameters and fresh optimizer state
};

/// Something that a worker does every so many of its local steps, and the option that says how many.
struct Period {
  std::string key;
  Step steps = 1;
};

/// Which ports and slots the halves use; asked once, when the company is put together.
struct Needs {
  bool servers = false;
  bool group = false;
  bool peers = false;
  bool in_step = false;  ///< pace: every worker takes the same number of steps, so leases are equal shares
  ModelHome model = ModelHome::center;
  /// ModelHome::center: kCenter, or the server_state(k) that holds an average of it. That one begins as a copy of the centre where
  /// no checkpoint has it, so that it is a model at every moment.
  Slot model_slot = kCenter;
  WorkerState worker_state = WorkerState::discarded;
  /// With WorkerState::replicated: what a checkpoint keeps changes at the end of a step only, when all its exchanges have ended. In
  /// between any worker can be looked at, also when the others wait for one that is lost.
  bool whole_steps = false;
  std::vector<Slot> worker_slots{};  ///< beyond params, grads and the optimizer's own
  std::uint8_t server_states = 0;    ///< state vectors per shard
  std::string
      server_state_of{};  ///< whose rule understands them ("adam"): only the same takes them up; empty: mere scratch
  bool rounds = true;     ///< a wire of 16 bits has something to round; false: only masters travel, in float32
  std::vector<Period> periods{};  ///< of exchanges: one that is longer than the run never comes (warnings())

  /// Whether someone may become a member in the middle of a run, with x = c and a fresh half: where the model is the centre and nobody
  /// shares a collective. At any moment on leases on demand. In step, between two steps that everyone has ended, with no request open
  /// or on its way: else it would be counted in rounds that it has no part in. A coordinator sees to that.
  [[nodiscard]] bool takes_newcomers() const noexcept { return model == ModelHome::center && !group; }
};

/// One strategy with its options, for one run. Immutable; makes as many halves as there are members.
class Strategy {
 public:
  virtual ~Strategy() = default;
  [[nodiscard]] virtual Needs needs() const = 0;
  [[nodiscard]] virtual std::unique_ptr<WorkerHalf> worker() const = 0;
  /// Null when needs().servers is false.
  [[nodiscard]] virtual std::unique_ptr<ServerHalf> server() const = 0;
};

/// One row of the registry. `make` checks options against the company: Errc::config names the key and what to do.
struct StrategyInfo {
  std::string name;
  std::string summary;  ///< one line for `troupe strategies`
  std::function<void(core::Schema&)> add_options;
  std::function<core::Result<std::unique_ptr<Strategy>>(const core::Config&, const Company&)> make;
};

}  // namespace troupe::strategies
