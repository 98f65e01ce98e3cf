/// The coordinator's port in virtual time: the rules are those of real runs (strategies/coordination/coordinator.hpp). Tasks take no time,
/// except evaluating the model between two epochs, waits for what is in transit, and the way of a newcomer's start over the network. One
/// thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/order/lease.hpp"
#include "sim/world.hpp"
#include "strategies/coordination/coordinator.hpp"

namespace troupe::sim {

class Coordinator final : public coordination::CoordinatorPort {
 public:
  /// `pause`: of an evaluation and its checkpoint, when training goes on afterwards.
  Coordinator(World& world, data::LeaseScheduler leases, Duration pause);

  void begin();  ///< training begins
  void requested(strategies::WorkerId worker, std::int64_t leases) {
    machine_.requested(worker, static_cast<std::uint32_t>(leases));
  }
  /// At `now`, which may be ahead of the world's clock, the worker has ended the lease, and `steps` steps of its life.
  void done(strategies::WorkerId worker, std::uint64_t lease, strategies::Step steps, Duration now);
  void lost(strategies::WorkerId worker) { machine_.lost(worker, "its host has died"); }
  void arrived(strategies::WorkerId worker) { machine_.arrived(worker); }

  // Events.
  void task_begins(std::uint64_t order);
  void task_done(std::uint64_t order);
  void time_is_up();
  void evaluated();              ///< beside training
  void silent();                 ///< no packet is in flight
  void peer_messages_arrived();  ///< no peer message is in flight
  void workers_at_rest();        ///< all workers have stopped, and no packet is in flight

  /// Evaluates the current model, where gradients are computed. False when it is not finite.
  bool evaluate_model();

  [[nodiscard]] bool ended() const noexcept { return machine_.ended(); }
  [[nodiscard]] bool dismissing() const noexcept { return waits_ == coordination::Task::dismiss_workers; }
  [[nodiscard]] const data::LeaseScheduler& leases() const noexcept { return machine_.leases(); }
  [[nodiscard]] coordination::EarlyStop early_stop() const noexcept { return machine_.early_stop(); }
  [[nodiscard]] Duration trained() const;  ///< without pauses

  // CoordinatorPort.
  [[nodiscard]] Duration now() const override;
  void grant(strategies::WorkerId worker, std::span<const data::Lease> leases, bool after_pause) override;
  void perform(const coordination::Order& order) override;
  void write_checkpoint() override { machine_.written({}); }
  void rewound(strategies::Step) override {}
  void membership_changed(const strategies::Membership& membership) override;
  void removed(strategies::WorkerId worker) override { lost_ = worker; }
  void lost(const coordination::Loss&) override {}
  void absent(strategies::WorkerId) override {}
  void disconnected(strategies::WorkerId, strategies::WorkerId) override {}
  void find_replacement(strategies::WorkerId) override {}  // a lost host returns by itself, or does not
  void warn(const std::string&) override {}
  void evaluate_beside() override;
  void judged(const coordination::EvaluationWatch::Verdict&) override {}  // a forecast keeps no model
  void stops_early(coordination::EarlyStop) override {}                   // result() asks for it
  void ended(const std::optional<core::Error>& error) override;

 private:
  void answer(coordination::TaskOutcome outcome = coordination::TaskOutcome::done);
  void evaluate();
  [[nodiscard]] coordination::Score score() const;
  void prepare_newcomer();

  World& world_;
  Duration pause_;
  coordination::Coordinator machine_;
  coordination::Order order_;                  // the latest
  std::optional<coordination::Task> waits_;    // for workers, or for what is in transit
  std::optional<strategies::WorkerId> lost_;   // the next membership is without it
  Duration latest_done_{0};                    // of the latest lease that ended
  std::uint64_t deaths_before_ = 0;            // of the newcomer's host, before it was prepared
  std::optional<coordination::Score> beside_;  // of the model that is evaluated beside training
  bool limit_planned_ = false;                 // the time limit of this stretch of training
};

}  // namespace troupe::sim
