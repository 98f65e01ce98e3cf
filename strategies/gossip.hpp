/// Gossip SGD with weighted averaging, GoSGD (Blot, Picard, Cord, Thome 2016): every worker trains alone and now and then mails
/// its parameters to a peer, which mixes them in. a_i is worker i's share of the model, 1/N at first.
///
///     after each local step:   for every mail (x_m, a_m) that has come:   x ← (a x + a_m x_m) / (a + a_m);   a ← a + a_m
///                              with probability p:   a ← a / 2;   send (x, a) to a peer drawn uniformly (of more than 193
///                                                    workers: among those that it may write to, PeerGraph)
///     the model:               Σ a_i x_i,  while  Σ a = 1  over the workers, the mail on its way and what was lost
///
/// A send that finds no credit is skipped, and the worker keeps its a: nobody ever waits for anybody. Mail that comes when there
/// are no more steps is mixed in at once.
///
/// Messages: p per step and worker, no server, no group. Bytes per step and worker for P parameters: p · 4P, never rounded: x would
/// lose what it learned since the last mail. Staleness: unbounded.
/// A lost member takes its a and the mail on its way to it along: the others' shares of the model grow by as much.
#pragma once

#include "strategies/host/peer_graph.hpp"
#include "strategies/strategy.hpp"

namespace troupe::strategies {

struct GossipConfig {
  double p = 0.25;
};

class GossipWorker final : public WorkerHalf {
 public:
  GossipWorker(std::uint32_t workers, std::shared_ptr<const PeerGraph> graph, double probability) noexcept;
  void on(const StepDone& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const Stopped& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const PeerMail& event, const WorkerContext& context, WorkerActions& then) override;
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
  std::vector<PeerMail> inbox_;
};

[[nodiscard]] StrategyInfo gossip();

}  // namespace troupe::strategies
