/// Local SGD with an outer optimizer (Stich 2019; Douillard et al. 2023, DiLoCo: diloco.hpp has its defaults; Douillard et al. 2025,
/// Streaming DiLoCo, for fragments and delay). Workers train alone for τ steps from the centre, then the centre moves by the mean of
/// what they did, taken as a gradient:
///
///     worker:   Δ_i = c_i − x_i,  with c_i the centre that it began from;   x_i ← c when the answer is there
///     shard:    c ← Outer(c, mean_i Δ_i)              outer = sgd: c ← c − lr Δ, with lr = 1 the mean of all x_i
///                                                     nesterov: v ← μ v − lr Δ;  c ← c + μ v − lr Δ
///
/// fragments = F: one F-th of the shards every τ / F steps, in turn. delay = d: the worker goes on and takes the answer d steps after
/// it sent, x ← c + (x − x_sent), waiting if it is not there yet: the same numbers whatever the messages' speed.
///
/// A round is a number of steps. It closes when all members have contributed, or `quorum` of them; contributions are summed in rank
/// order. A contribution whose round is closed is late: it is answered at once with the centre as it is, and counts in the next
/// round. So nobody waits for who is behind, and who is behind never waits. What is late for the last round is not used.
/// When there are no more steps, the ones since the last round make a last one.
///
/// Messages: a request and a reply per shard every τ steps. Bytes per step and worker for P parameters: 2 · 4P / τ on a wire.
/// Staleness: with all members none, but for the last round after a delay; a late contribution's is the rounds that it missed.
/// A lost member: rounds close without it.
#pragma once

#include <map>

#include "strategies/strategy.hpp"

namespace troupe::strategies {

struct LocalSgdConfig {
  std::int64_t tau = 8;
  std::string outer = "sgd";
  double outer_lr = 0;
  double outer_momentum = 0.9;
  std::int64_t fragments = 1;
  std::int64_t delay = 0;
  std::int64_t quorum = 0;
};

struct LocalSgdRule {
  Step tau = 8;
  std::uint32_t fragments = 1;
  Step delay = 0;
  ShardId servers = 1;
  std::size_t quorum = 0;  // 0: all
  core::OptimizerStep outer{.lr = 1};
  [[nodiscard]] Step period() const noexcept { return tau / fragments; }
  /// The fragment whose turn it is after `steps` steps, a multiple of period().
  [[nodiscard]] std::uint64_t turn(Step steps) const noexcept { return (steps / period() - 1) % fragments; }
  [[nodiscard]] Shards shards(std::uint64_t fragment) const noexcept;
};

class LocalSgdWorker final : public WorkerHalf {
 public:
  explicit LocalSgdWorker(const LocalSgdRule& rule) noexcept : rule_(rule) {}
  void on(const Started& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const StepDone& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const Stopped& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) override;
  [[nodiscard]] std::string state() const override;
  [[nodiscard]] core::Result<void> restore(const std::string& text) override;

 private:
  void send(Step steps, std::uint64_t fragment, WorkerActions& then);
  void take(std::uint64_t fragment, WorkerActions& then);
  void hand_in_the_rest(Step steps, WorkerActions& then);

  LocalSgdRule rule_;
  Step due_ = 0;            // steps after which the answer is to be taken; 0: none is
  bool in_flight_ = false;  // that answer has not come
  bool waiting_ = false;    // it is due
  bool stepped_ = false;
  bool stopped_ = false;
};

class LocalSgdServer final : public ServerHalf {
 public:
  explicit LocalSgdServer(const LocalSgdRule& rule) noexcept : rule_(rule) {}
  void on(const Request& request, const ServerContext& context, ServerActions& then) override;
  void on(const MembershipChanged& event, const ServerContext& context, ServerActions& then) override;
  [[nodiscard]] std::string state() const override;
  [[nodiscard]] core::Result<void> restore(const std::string& text) override;

 private:
  void close_if_complete(const Membership& membership, ServerActions& then);
  [[nodiscard]] bool complete(const Membership& membership) const;

  LocalSgdRule rule_;
  std::map<WorkerId, Request> round_;  // who has contributed to the open one, in rank order
  Step closed_ = 0;                    // the latest closed round's number of steps
  std::uint64_t late_ = 0;             // contributions that the sum holds already
};

/// The section's options under other defaults, and the strategy that they make.
[[nodiscard]] core::Table<LocalSgdConfig> local_sgd_table(const LocalSgdConfig& defaults);
[[nodiscard]] core::Result<std::unique_ptr<Strategy>> make_local_sgd(const core::Config& config,
                                                                     const LocalSgdConfig& options,
                                                                     const Company& company);

[[nodiscard]] StrategyInfo local_sgd();

}  // namespace troupe::strategies
