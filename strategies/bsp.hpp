/// Bulk-synchronous parallel training: every step, all workers combine what they computed, and no one goes on before.
///
/// combine = gradients:  g = (1/N) Σ g_i, then everyone takes the same optimizer step. Replicas stay bit-identical. Reduced
///                       bucket by bucket while backward goes on, or whole where the backend reports no buckets.
///           updates:    v_i = μ v_i − η g_i;  x ← x + Σ v_i, in the step it was computed in (SUBGD; no scaling of η by N).
///           weights:    a local optimizer step, then x = (1/N) Σ x_i (AWAGD), velocity likewise if average_momentum. As all x were
///                       equal before it, x ← x + (1/N) Σ v_i with v_i the changes that the steps made: what is reduced are
///                       differences, which a wire of 16 bits may round. It never rounds a velocity.
///
/// Messages: collectives only, no server. Bytes per step and worker for P parameters: 2 (N−1)/N · 4P on a wire, one pass over
/// N arenas in shared memory. With backup > 0 a step does not wait for so many of the slowest, and servers combine gradients:
/// bsp_backup.hpp. Staleness: none. A lost member: the others take parameters and optimizer state from one that
/// completed the newest step and go on with N − 1.
#pragma once

#include "strategies/strategy.hpp"

namespace troupe::strategies {

struct BspConfig {
  std::string combine = "gradients";
  bool average_momentum = false;
  std::int64_t backup = 0;
};

class BspWorker final : public WorkerHalf {
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
  bool in_buckets_ = false;  // this step's gradients are being reduced already
  bool stepped_ = false;     // StepDone has been told and its step is not finished
  core::OptimizerStep optimizer_{};
};

[[nodiscard]] StrategyInfo bsp();

}  // namespace troupe::strategies
