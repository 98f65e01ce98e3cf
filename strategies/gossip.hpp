/// Gossip SGD with weighted averaging, GoSGD (Blot, Picard, Cord, Thome 2016): every worker trains alone and sometimes sends its
/// parameters to a peer, which mixes them into its own. a_i is worker i's share of the model, 1/N at first.
///
///     after each local step:   for every peer message (x_m, a_m) that has arrived:   x ← (a x + a_m x_m) / (a + a_m);   a ← a + a_m
///                              with probability p:   a ← a / 2;   send (x, a) to a peer drawn uniformly (with more than 193
///                                                    workers: among the peers that it may write to, PeerGraph)
///     the model:               Σ a_i x_i,  while  Σ a = 1  over the workers, the messages in flight and the lost shares
///
/// A send without credit is skipped, and the worker keeps its a: no worker ever waits. After its last step a worker mixes an
/// arriving message in at once.
///
/// Messages: p per step and worker, no server, no group. Bytes per step and worker for P parameters: p · 4P, never rounded:
/// rounding x would lose small steps since the last message. Staleness: unbounded. A lost member takes its a and the messages in
/// flight to it with it: the shares of the other workers grow accordingly.
#pragma once

#include "strategies/host/peer_graph.hpp"
#include "strategies/strategy.hpp"

namespace troupe::strategies {

struct GossipConfig {
  double p = 0.25;
};

class GossipWorker final : public WorkerRule {
 public:
  GossipWorker(std::uint32_t workers, std::shared_ptr<const PeerGraph> graph, double probability) noexcept;
  void on(const StepDone& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const Stopped& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const PeerMessageArrived& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const SendSkipped& event, const WorkerContext& context, WorkerActions& then) override;
  [[nodiscard]] double weight() const noexcept override { return weight_; }
  [[nodiscard]] std::string state() const override;
  [[nodiscard]] core::Result<void> restore(const std::string& text) override;

 private:
  void drain_inbox(WorkerActions& then);
  void perhaps_send(const WorkerContext& context, WorkerActions& then);

  std::shared_ptr<const PeerGraph> graph_;
  double probability_;
  double weight_;
  bool stopped_ = false;
  std::vector<PeerMessageArrived> inbox_;
};

[[nodiscard]] StrategyInfo gossip();

}  // namespace troupe::strategies
