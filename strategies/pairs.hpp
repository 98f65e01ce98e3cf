/// Random-pair averaging: every τ local steps the workers are matched at random, and the two of each pair go on from the mean of
/// their parameters,
///     x_i, x_j ← (x_i + x_j) / 2        for every pair {i, j} of a perfect matching; with an odd number one sits out.
///
/// Everyone draws the same matching from (run seed, round), so nobody needs to be told. It is drawn among those who began
/// together: who has finished its steps took part in every round, and when a member is lost the others begin anew.
///
/// Messages: one reduction between two per round. Bytes per round and worker for P parameters: 4P on a wire, never rounded: the two have
/// no value in common that they could exchange differences from. Staleness: none, but a
/// round mixes pairs only: what one worker learns reaches all N after about log2 N rounds. A worker waits for its partner alone.
/// A lost member: its partner cannot end the round; the survivors begin anew, matched among themselves.
#pragma once

#include <optional>

#include "strategies/strategy.hpp"

namespace troupe::strategies {

struct PairsConfig {
  std::int64_t tau = 4;
};

/// Who `self` meets in a uniformly drawn perfect matching of `members`; nobody when it is the odd one out.
[[nodiscard]] std::optional<WorkerId> partner_of(WorkerId self, std::vector<WorkerId> members, core::Random random);

class PairsWorker final : public WorkerHalf {
 public:
  explicit PairsWorker(Step tau) noexcept : tau_(tau) {}
  void on(const Started& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const StepDone& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) override;
  [[nodiscard]] std::string state() const override;
  [[nodiscard]] core::Result<void> restore(const std::string& text) override;

 private:
  Step tau_;
  std::vector<WorkerId> members_;  // who began together
};

[[nodiscard]] StrategyInfo pairs();

}  // namespace troupe::strategies
