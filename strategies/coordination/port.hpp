/// What the coordinator needs from its environment: actors, simulator, replay and schedule search implement only this. A port is called
/// on its coordinator's thread. An answer is a new call of the coordinator on the same thread, at once (from inside the port's method) or
/// later, where a method says so.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "data/order/lease.hpp"
#include "strategies/coordination/evaluation_watch.hpp"
#include "strategies/host/types.hpp"

namespace troupe::coordination {

using core::Duration;
using strategies::Step;
using strategies::WorkerId;

/// What members and recorder do for the coordinator while training is paused. The answer to each is Coordinator::answered().
enum class Task : std::uint8_t {
  dismiss_workers,      ///< no step follows: workers push what they still hold
  settle_workers,       ///< what has arrived is passed to the rules, and no exchange is pending
  await_peer_messages,  ///< none is in transit between two members
  take_model,           ///< copy the model and the running statistics
  evaluate,             ///< the copy: on the validation split, or without one, and at an epoch's end, on the test split
  await_evaluation,     ///< the one that was begun by evaluate_beside() has ended, and scored() was called
  take_state,           ///< copy what a checkpoint has besides the model
  prepare_newcomer,     ///< its site loads the newest checkpoint
  begin_newcomer,       ///< it is a member now, and begins
  take_members,         ///< copy the state of every member: a journal segment begins with it
  collect_records,      ///< wait until the journal records of members in other processes have arrived
  begin_segment,        ///< of the journal
  find_newest,          ///< in an emergency: which member has ended the most steps
};
inline constexpr int kTasks = 13;
[[nodiscard]] const char* name(Task task) noexcept;

struct Order {
  std::uint64_t number = 0;  ///< of the order; its answer has the same
  Task task{};
  /// prepare_newcomer, begin_newcomer: the newcomer; take_model, take_state: the worker to ask, if all workers hold the same model.
  WorkerId worker = 0;
  Step first_step = 0;  ///< prepare_newcomer: the step at which its host begins
};

enum class TaskOutcome : std::uint8_t {
  done,
  interrupted,  ///< a member was lost meanwhile, and what it had is missing: the task must begin anew
  refused,      ///< prepare_newcomer: it does not join
};

struct Answer {
  std::uint64_t number = 0;  ///< the order's
  TaskOutcome outcome = TaskOutcome::done;
  Score score{};                   ///< evaluate
  std::optional<WorkerId> newest;  ///< find_newest; none: no member reported its steps
  Step steps = 0;  ///< find_newest: of `newest`; take_model, take_state: of Order::worker, when it was copied
};

/// A worker that was lost, and the leases that it leaves.
struct Loss {
  WorkerId worker = 0;
  std::string why;
  bool again = false;  ///< its leases are granted again; else they are passed over
  std::vector<data::LeftLease> leases;
};

class CoordinatorPort {
 public:
  virtual ~CoordinatorPort() = default;
  [[nodiscard]] virtual Duration now() const = 0;

  /// A worker may begin these batches. `after_pause`: training was paused before. May call Coordinator::requested() from inside.
  virtual void grant(WorkerId worker, std::span<const data::Lease> leases, bool after_pause) = 0;
  /// Answer: Coordinator::answered(), once; at once or later. One order at a time: a new one replaces an order without an answer.
  virtual void perform(const Order& order) = 0;
  /// Write what take_model and take_state have copied, while training goes on. Answer: Coordinator::written(), at once or later.
  virtual void write_checkpoint() = 0;
  /// Every worker has exactly `steps` steps now, of this session: those begun after them are undone.
  virtual void rewound(Step steps) = 0;

  /// Everybody must know: members, servers, exchangers.
  virtual void membership_changed(const strategies::Membership& membership) = 0;
  /// The worker is no member any more. It may still live, out of reach of the others: nothing that it says counts from now on.
  virtual void removed(WorkerId worker) = 0;
  /// The run goes on without the worker.
  virtual void lost(const Loss& loss) = 0;
  /// The run begins without the worker.
  virtual void absent(WorkerId worker) = 0;
  /// Two members do not reach each other any more; both remain.
  virtual void disconnected(WorkerId one, WorkerId other) = 0;
  /// Later, perhaps: Coordinator::arrived().
  virtual void find_replacement(WorkerId worker) = 0;
  virtual void warn(const std::string& text) = 0;
  /// Evaluate what take_model has copied, while training goes on. Answer: Coordinator::scored(), later. One at a time.
  virtual void evaluate_beside() = 0;
  /// An evaluation's score was the best, or the learning rate falls for the leases that follow. The model's copy is the evaluated one.
  virtual void judged(const EvaluationWatch::Verdict& verdict) = 0;
  /// Training is over, before the last epoch's end: at most once, and never EarlyStop::none. The model is evaluated if it has not been.
  virtual void stops_early(EarlyStop why) = 0;
  /// The run is over: the last call. None: it has done what was asked.
  virtual void ended(const std::optional<core::Error>& error) = 0;
};

}  // namespace troupe::coordination
