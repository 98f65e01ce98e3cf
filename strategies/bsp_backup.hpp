/// Bulk-synchronous training with b backup workers (Chen, Pan, Monga, Bengio, Jozefowicz 2016): `backup` of bsp.hpp. A step does
/// not wait for its b slowest gradients.
///
///     worker:   push g_i of step t to every shard;   x ← c of step t + 1;   compute step t + 1
///     shard:    when N − b gradients of step t have come:   c ← Optimizer(c, their mean);   answer those
///               a gradient of an older step is dropped: its sender takes up the newest step's parameters and goes on there
///
/// Shards decide for themselves, and may close a step with different members. What a worker computes with is nevertheless one
/// step's parameters throughout: it pulls from the shards that dropped its gradient, and from all that are behind the newest it has
/// seen; a shard that has not closed that step yet holds the pull until it has. Each shard says with its answer which step it is of.
/// The company may have moved on before the worker's next gradient arrives: then that one is late, too.
/// A gradient is clipped by its worker: a shard sees a slice only.
///
/// Messages: a request and a reply per shard and step; a late worker pulls once more. Bytes per step and worker for P parameters:
/// 2 · 4P. Staleness: none of what is applied. A lost member: N is the number of those alive.
#pragma once

#include <map>

#include "strategies/strategy.hpp"

namespace troupe::strategies {

class BackupWorker final : public WorkerHalf {
 public:
  void on(const StepDone& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const Replied& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) override;

 private:
  void catch_up(WorkerActions& then);

  Step steps_ = 0;                  // that this worker has completed or passed over
  std::map<ShardId, Step> has_of_;  // per shard: steps of the company that the parameters in grads are the result of
  int pending_ = 0;                 // exchanges in flight
};

class BackupServer final : public ServerHalf {
 public:
  /// `optimizer`: kind and constants; the learning rate is each step's.
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
  std::map<WorkerId, Request> pulls_;      // of steps that are not closed here yet; a worker has one at a time
};

/// `backup` is above 0.
[[nodiscard]] std::unique_ptr<Strategy> make_bsp_with_backup(std::size_t backup, const Company& company);

}  // namespace troupe::strategies
