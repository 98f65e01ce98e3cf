/// Synchronous elastic averaging (Zhang, Choromanska, LeCun 2015, eq. 3 and 4 with all workers at the same step): every τ local
/// steps, with x_i and c from before,
///     x_i ← x_i − α (x_i − c);      c ← c + α Σ_i (x_i − c)
///
/// A shard holds the requests of the members until the last one arrives, then processes them in rank order. It computes the same as
///     s = Σ_i x_i;   x_i ← (1 − α) x_i + α c;   c ← (1 − N α) c + α s
/// so repeated runs are bit-identical. N α = β ≤ 1, or the centre overshoots.
///
/// Messages: one request and one reply per shard every τ steps. Bytes per exchange and worker for P parameters: 2 · 4P on a wire;
/// 4P + 2P on a 16-bit wire, which carries x exactly and rounds only its change. Staleness: 0; every worker waits for the slowest.
/// A lost member: rounds close without it. Requests that arrived before the shard learned of the loss still count; later ones are
/// dropped.
#pragma once

#include <map>

#include "strategies/strategy.hpp"

namespace troupe::strategies {

struct SyncEasgdConfig {
  double alpha = 0;
  double beta = 0.9;
  std::int64_t tau = 4;
};

class SyncEasgdWorker final : public WorkerRule {
 public:
  explicit SyncEasgdWorker(Step tau) noexcept : tau_(tau) {}
  void on(const StepDone& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) override;

 private:
  Step tau_;
};

class SyncEasgdServer final : public ServerRule {
 public:
  explicit SyncEasgdServer(float alpha) noexcept : alpha_(alpha) {}
  void on(const Request& request, const ServerContext& context, ServerActions& then) override;
  void on(const MembershipChanged& event, const ServerContext& context, ServerActions& then) override;
  void refused(const Request& request, const ServerContext& context, ServerActions& then) override;

 private:
  void close_if_complete(const Membership& membership, ServerActions& then);

  float alpha_;
  std::map<WorkerId, RequestId> round_;  // the requests that have arrived
};

[[nodiscard]] StrategyInfo sync_easgd();

}  // namespace troupe::strategies
