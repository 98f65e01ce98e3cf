/// Bulk-synchronous training with b backup workers (Chen, Pan, Monga, Bengio, Jozefowicz 2016): `backup` of bsp.hpp. A step
/// completes without its b slowest gradients.
///
///     worker:   push g_i of step t to every shard;   x ← c of step t + 1;   compute step t + 1
///     shard:    after N − b gradients of step t:   c ← Optimizer(c, their mean);   answer those requests
///               drop a gradient of an older step: its worker takes the newest step's parameters and continues there
///
/// Each shard decides for itself, so shards may close a step with different workers. A worker nevertheless computes with the
/// parameters of one step throughout. It pulls from the shards that dropped its gradient and from all shards that are behind the
/// newest step that it has seen. A shard that has not closed that step yet holds the pull until then. Each answer carries the step
/// of the shard. The run may have advanced before the worker's next gradient arrives; that gradient is then late too. The worker
/// clips its gradient, because a shard sees only a slice.
///
/// Messages: a request and a reply per shard and step; a late worker makes one more pull. Bytes per step and worker for P
/// parameters: 2 · 4P. Staleness of applied gradients: none. A lost member: N counts only live workers.
#pragma once

#include <map>

#include "strategies/strategy.hpp"

namespace troupe::strategies {

class BackupWorker final : public WorkerRule {
 public:
  void on(const StepDone& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const Replied& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) override;

 private:
  void catch_up(WorkerActions& then);

  Step steps_ = 0;                  // completed or passed over by this worker
  std::map<ShardId, Step> has_of_;  // per shard: the number of closed steps that made the parameters in grads
  int pending_ = 0;                 // exchanges in flight
};

class BackupServer final : public ServerRule {
 public:
  /// `optimizer`: kind and constants. The learning rate comes with each step.
  BackupServer(std::size_t backup, const core::OptimizerStep& optimizer) noexcept
      : backup_(backup), optimizer_(optimizer) {}
  void on(const Request& request, const ServerContext& context, ServerActions& then) override;
  void on(const MembershipChanged& event, const ServerContext& context, ServerActions& then) override;
  [[nodiscard]] std::string state() const override;
  [[nodiscard]] core::Result<void> restore(const std::string& text) override;

 private:
  void close_steps(const Membership& membership, Version version, ServerActions& then);
  [[nodiscard]] bool complete(const Membership& membership) const;
  void close_step(Version version, ServerActions& then);
  void answer_pulls(ServerActions& then);

  std::size_t backup_;
  core::OptimizerStep optimizer_;
  Step closed_ = 0;                        // steps
  std::map<WorkerId, Request> gradients_;  // of the open step, in rank order
  std::map<WorkerId, Request> pulls_;      // of steps that are not closed here yet; at most one per worker
};

/// REQUIRES backup > 0.
[[nodiscard]] std::unique_ptr<Strategy> make_bsp_with_backup(std::size_t backup, const RunShape& shape);

}  // namespace troupe::strategies
