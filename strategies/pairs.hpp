/// Random-pair averaging: every τ local steps the workers are matched at random, and both workers of a pair continue from the mean
/// of their parameters,
///     x_i, x_j ← (x_i + x_j) / 2        for every pair {i, j} of a perfect matching; with an odd number one worker sits out.
///
/// All workers draw the same matching from (run seed, round), without messages. They draw it among the members that began together:
/// a worker that has finished its steps took part in every round, and after a loss the other workers restart.
///
/// Messages: one reduction between two workers per round. Bytes per round and worker for P parameters: 4P on a wire, never rounded:
/// the two workers have no common value against which they could exchange differences. Staleness: none, but a round mixes only
/// pairs: a change of one worker reaches all N after about log2 N rounds. A worker waits only for its partner. A lost member: its
/// partner cannot end the round; the survivors restart, matched among themselves.
#pragma once

#include <optional>

#include "strategies/strategy.hpp"

namespace troupe::strategies {

struct PairsConfig {
  std::int64_t tau = 4;
};

/// The partner of `self` in a uniformly drawn perfect matching of `members`; none if `self` is the odd one.
[[nodiscard]] std::optional<WorkerId> partner_of(WorkerId self, std::vector<WorkerId> members, core::Random random);

class PairsWorker final : public WorkerRule {
 public:
  explicit PairsWorker(Step tau) noexcept : tau_(tau) {}
  void on(const Started& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const StepDone& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) override;
  [[nodiscard]] std::string state() const override;
  [[nodiscard]] core::Result<void> restore(const std::string& text) override;

 private:
  Step tau_;
  std::vector<WorkerId> members_;  // the members that began together
};

[[nodiscard]] StrategyInfo pairs();

}  // namespace troupe::strategies
