/// Mixed: synchronous inside groups of workers, asynchronous between groups. A group averages its gradients in every step and acts
/// as one worker of an inner strategy (downpour, easgd or ssp, with their own options).
///
///     each member:      g_i ← clip(g_i);   g ← mean of the group's g_i
///     the leader:       runs the inner strategy's worker rule with g, until that rule would compute the next step
///     each member:      x ← the leader's x;   computes the next step
///     a shard:          runs the inner strategy's server rule, with groups as its workers
///                       ema > 0:  the model is an average of the centre (averaged.hpp)
///
/// The leader is the lowest rank of the members that began together. For the servers a group is one worker under any leader: a new
/// leader continues the clock of its group. Leases are equal shares: all members of a group take the same steps.
///
/// Messages: a reduction and a broadcast per step and group, and the inner strategy's per group. Bytes per step and worker for P
/// parameters: 2 (n−1)/n · 4P and 4P inside a group of n, and the inner strategy's 1/n-th. Staleness: the inner strategy's, with as
/// many workers as there are groups. A lost member: its group cannot end the step and restarts without it; other groups need no
/// action.
#pragma once

#include <utility>

#include "strategies/strategy.hpp"

namespace troupe::strategies {

struct MixedConfig {
  std::int64_t group_size = 2;
  std::string inner = "downpour";
  double ema = 0;
  std::string placement = "colocated";
  std::string overlap = "off";  // the inner strategy's; every inner strategy has this option
};

/// Groups of consecutive ranks; the last group may be smaller.
struct Grouping {
  std::uint32_t size = 1;
  [[nodiscard]] WorkerId group_of(WorkerId worker) const noexcept { return worker / size; }
  [[nodiscard]] Group members_of(WorkerId worker, const Membership& members) const;
  /// The groups that have members, as the inner strategy's membership.
  [[nodiscard]] Membership groups(const Membership& members) const;
};

class MixedWorker final : public WorkerRule {
 public:
  MixedWorker(Grouping grouping, std::unique_ptr<WorkerRule> inner) : grouping_(grouping), inner_(std::move(inner)) {}
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
  std::unique_ptr<WorkerRule> inner_;  // the leader's
  Group members_;                      // the members of the group that began together
  StepDone step_;                      // the step of which the group averages the gradients
  bool inner_computes_ = false;        // as the inner rule sees it: from its Compute until the group has averaged
  std::vector<WorkerEvent> late_;      // events that arrived meanwhile; passed on at the inner step's end
};

class MixedServer final : public ServerRule {
 public:
  MixedServer(Grouping grouping, std::unique_ptr<ServerRule> inner) : grouping_(grouping), inner_(std::move(inner)) {}
  void on(const Request& request, const ServerContext& context, ServerActions& then) override;
  void on(const MembershipChanged& event, const ServerContext& context, ServerActions& then) override;
  void on(const DeadlinePassed& event, const ServerContext& context, ServerActions& then) override;
  void refused(const Request& request, const ServerContext& context, ServerActions& then) override;
  [[nodiscard]] std::string state() const override { return inner_->state(); }
  [[nodiscard]] core::Result<void> restore(const std::string& text) override { return inner_->restore(text); }

 private:
  template <class Event>
  void tell_inner(const Event& event, const ServerContext& context, ServerActions& then);

  Grouping grouping_;
  std::unique_ptr<ServerRule> inner_;
};

[[nodiscard]] StrategyInfo mixed();

}  // namespace troupe::strategies
