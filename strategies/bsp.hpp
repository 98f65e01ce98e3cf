/// Bulk-synchronous parallel training: in every step all workers combine their results, and the next step begins after that.
///
/// combine = gradients:  g = (1/N) Σ g_i, then every worker takes the same optimizer step. Replicas stay bit-identical. Reduced
///                       bucket by bucket during backward, or whole if the backend reports no buckets.
///           updates:    v_i = μ v_i − η g_i;  x ← x + Σ v_i, in the same step (SUBGD; η is not scaled by N).
///           weights:    a local optimizer step, then x = (1/N) Σ x_i (AWAGD), velocity likewise if average_momentum. All x were
///                       equal before the step, so this is x ← x + (1/N) Σ v_i with v_i the changes of the steps. The vectors that
///                       are reduced are these differences, which a 16-bit wire may round. It never rounds a velocity.
///
/// Messages: collectives only, no server. Bytes per step and worker for P parameters: 2 (N−1)/N · 4P on a wire, one pass over N
/// arenas in shared memory. With backup > 0 a step completes without the slowest `backup` workers, and servers combine gradients:
/// bsp_backup.hpp. Staleness: none. A lost member: the others take parameters and optimizer state from a worker that completed the
/// newest step, and continue with N − 1 workers.
#pragma once

#include "strategies/strategy.hpp"

namespace troupe::strategies {

struct BspConfig {
  std::string combine = "gradients";
  bool average_momentum = false;
  std::int64_t backup = 0;
};

class BspWorker final : public WorkerRule {
 public:
  enum class Combine { gradients, updates, weights };
  BspWorker(Combine combine, bool average_velocity) noexcept : combine_(combine), average_velocity_(average_velocity) {}

  void on(const BucketReady& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const StepDone& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) override;

 private:
  void finish_when_all_are_in(WorkerActions& then);

  Combine combine_;
  bool average_velocity_;
  int pending_ = 0;          // reductions in flight
  bool in_buckets_ = false;  // the reduction of this step's gradients has begun
  bool stepped_ = false;     // StepDone came and its step is not finished
  core::OptimizerStep optimizer_{};
};

[[nodiscard]] StrategyInfo bsp();

}  // namespace troupe::strategies
