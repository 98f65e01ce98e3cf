/// Mixed: synchronous inside groups of workers, asynchronous between them. A group averages its gradients at every step and acts as
/// one worker of an inner strategy (downpour, easgd or ssp, with their own options).
///
///     each member:      g_i ← clip(g_i);   g ← mean of the group's g_i
///     the leader:       what the inner strategy's worker does with g; when it would compute the next step,
///     each member:      x ← the leader's x;   computes it
///     a shard:          what the inner strategy's server does, with groups for workers
///                       ema > 0:  e ← ema · e + (1 − ema) · c  after every write of c;  e is the model, c_0 its beginning
///
/// The leader is the lowest rank of those who began together. To the servers a group is one worker whoever leads it: a new leader goes
/// on with its group's clock. Leases are equal shares: all members of a group take the same steps.
///
/// Messages: a reduction and a broadcast per step and group, and the inner strategy's per group. Bytes per step and worker for P
/// parameters: 2 (n−1)/n · 4P and 4P inside a group of n, and the inner strategy's 1/n-th. Staleness: the inner strategy's, with as many
/// workers as there are groups. A lost member: its group cannot end the step, and begins anew without it; the others need no action.
#pragma once

#include <optional>

#include "strategies/strategy.hpp"

namespace troupe::strategies {

struct MixedConfig {
  std::int64_t group_size = 2;
  std::string inner = "downpour";
  double ema = 0;
  std::string placement = "colocated";
  std::string overlap = "off";  // the inner strategy's: all of them have one
};

/// Consecutive ranks; the last group may be smaller.
struct Grouping {
  std::uint32_t size = 1;
  [[nodiscard]] WorkerId group_of(WorkerId worker) const noexcept { return worker / size; }
  [[nodiscard]] Group members_of(WorkerId worker, const Membership& members) const;
  /// The groups that have members, as the inner strategy's company.
  [[nodiscard]] Membership groups(const Membership& members) const;
};

class MixedWorker final : public WorkerHalf {
 public:
  MixedWorker(Grouping grouping, std::unique_ptr<WorkerHalf> inner) : grouping_(grouping), inner_(std::move(inner)) {}
  void on(const Started& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const StepDone& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const Stopped& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const Replied& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const MembershipChanged& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const DeadlinePassed& event, const WorkerContext& context, WorkerActions& then) override;
  [[nodiscard]] std::string state() const override;
  [[nodiscard]] core::Result<void> restore(const std::string& text) override;

 private:
  void hear(WorkerEvent event, const WorkerContext& context, WorkerActions& then);
  void end_inner_step(const WorkerEvent& event, const WorkerContext& context, WorkerActions& then);
  void tell_inner(const WorkerEvent& event, const WorkerContext& context, WorkerActions& then);
  [[nodiscard]] bool leads(const WorkerContext& context) const { return members_.front() == context.self; }
  void begin_step(WorkerActions& then);

  Grouping grouping_;
  std::unique_ptr<WorkerHalf> inner_;  // the leader's
  Group members_;                      // who began together
  StepDone step_;                      // whose gradients are being averaged
  bool inner_computes_ = false;        // as far as it knows: from its Compute until the group has averaged
  std::vector<WorkerEvent> late_;      // what came meanwhile: told at the end of its step, as a host does
};

class MixedServer final : public ServerHalf {
 public:
  struct Average {
    Slot slot;
    float decay = 0;
  };
  MixedServer(Grouping grouping, std::unique_ptr<ServerHalf> inner, std::optional<Average> average)
      : grouping_(grouping), inner_(std::move(inner)), average_(average) {}
  void on(const Request& request, const ServerContext& context, ServerActions& then) override;
  void on(const MembershipChanged& event, const ServerContext& context, ServerActions& then) override;
  void on(const DeadlinePassed& event, const ServerContext& context, ServerActions& then) override;
  void refused(const Request& request, const ServerContext& context, ServerActions& then) override;
  [[nodiscard]] std::string state() const override { return inner_->state(); }
  [[nodiscard]] core::Result<void> restore(const std::string& text) override { return inner_->restore(text); }

 private:
  template <class Event>
  void tell_inner(const Event& event, const ServerContext& context, ServerActions& then);
  void pass_on(const ServerActions& said, ServerActions& then) const;

  Grouping grouping_;
  std::unique_ptr<ServerHalf> inner_;
  std::optional<Average> average_;
};

[[nodiscard]] StrategyInfo mixed();

}  // namespace troupe::strategies
