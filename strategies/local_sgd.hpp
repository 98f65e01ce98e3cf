/// Local SGD with an outer optimizer (Stich 2019; Douillard et al. 2023, DiLoCo: diloco.hpp has its defaults; Douillard et al.
/// 2025, Streaming DiLoCo, for fragments and delay). Workers train alone for τ steps from the centre. Then the centre moves by the
/// mean of their changes, which the outer optimizer takes as a gradient:
///
///     worker:   Δ_i = c_i − x_i,  with c_i the centre from which it began;   x_i ← c when the answer arrives
///     shard:    c ← Outer(c, mean_i Δ_i)              outer = sgd: c ← c − lr Δ, with lr = 1 the mean of all x_i
///                                                     nesterov: v ← μ v − lr Δ;  c ← c + μ v − lr Δ
///
/// fragments = F: one F-th of the shards every τ / F steps, in turn. delay = d: the worker continues and takes the answer d steps
/// after its request, x ← c + (x − x_sent); it waits for an answer that is still missing. So the numbers do not depend on the speed
/// of messages.
///
/// A round is a number of steps. It closes when all members, or `quorum` of them, have contributed; contributions are summed in
/// rank order. A contribution to a closed round is late: it is answered at once with the present centre and counts in the next
/// round. So with a quorum fast workers do not wait for slow ones, and a late worker does not wait. Late contributions to the last
/// round are not used. After the last step, the steps since the last round make one more round.
///
/// Messages: a request and a reply per shard every τ steps. Bytes per step and worker for P parameters: 2 · 4P / τ on a wire.
/// Staleness: none with all members, except in the last round after a delay; for a late contribution, the number of rounds that it
/// missed. A lost member: rounds close without it.
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
  /// The fragment that is exchanged after `steps` steps, a multiple of period().
  [[nodiscard]] std::uint64_t turn(Step steps) const noexcept { return (steps / period() - 1) % fragments; }
  [[nodiscard]] Shards shards(std::uint64_t fragment) const noexcept;
};

class LocalSgdWorker final : public WorkerRule {
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
  Step due_ = 0;            // the step count at which to take the answer; 0: none is due
  bool in_flight_ = false;  // that answer has not arrived
  bool waiting_ = false;    // the answer is due and the worker waits for it
  bool stepped_ = false;
  bool stopped_ = false;
};

class LocalSgdServer final : public ServerRule {
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
  std::map<WorkerId, Request> round_;  // contributions to the open round, in rank order
  Step closed_ = 0;                    // the latest closed round's number of steps
  std::uint64_t late_ = 0;             // late contributions that the sum already contains
};

/// The options of the section with other defaults, and the strategy for them.
[[nodiscard]] core::Table<LocalSgdConfig> local_sgd_table(const LocalSgdConfig& defaults);
[[nodiscard]] core::Result<std::unique_ptr<Strategy>> make_local_sgd(const core::Config& config,
                                                                     const LocalSgdConfig& options,
                                                                     const RunShape& shape);
/// Fragments, periods, delays and quorums: every option but the outer optimizer's.
[[nodiscard]] OptionSpace local_sgd_rounds(const RunShape& shape);
[[nodiscard]] Properties local_sgd_properties(const LocalSgdConfig& options);
[[nodiscard]] RateShare local_sgd_share(const LocalSgdConfig& options);
[[nodiscard]] std::vector<std::string> local_sgd_replayable_options();  // StrategyInfo::replayable_options

[[nodiscard]] StrategyInfo local_sgd();

}  // namespace troupe::strategies
