/// Downpour SGD (Dean et al. 2012): workers train on their own, push what they have summed up every n_push steps and replace
/// their parameters by the centre every n_fetch steps; nobody waits for anybody.
///
///   server_optimizer = none   a worker steps locally and sums its steps;      the server: c ← c + acc
///   otherwise                 a worker sums raw gradients and does not step;  the server: one optimizer step with acc / steps
///                             (no division by the number of workers: that is what lr is for)
///   staleness_aware           the server divides the step by max(1, staleness)                    (Zhang et al. 2015b)
///
/// Without overlap a worker waits for the server's answer, which in one process works on its memory in place; with overlap it
/// sends a copy and goes on. A transfer that falls due while its like is in flight is then skipped and counted; the sum goes
/// on growing, so nothing is lost.
///
/// Messages: a request and a reply per shard every n_push steps, and the same every n_fetch. Bytes per step and worker for P
/// parameters: 4P / n_push + 4P / n_fetch on a wire. Staleness: unbounded. A lost member needs no action.
#pragma once

#include <optional>

#include "strategies/strategy.hpp"

namespace troupe::strategies {

struct DownpourConfig {
  std::int64_t n_push = 1;
  std::int64_t n_fetch = 1;
  std::string server_optimizer = "none";
  bool staleness_aware = false;
  std::string overlap = "off";
};

struct DownpourRule {
  Step n_push = 1;
  Step n_fetch = 1;
  bool local_steps = true;  // server_optimizer = none
  bool overlap = false;
  /// Where the sum is: a single step's is where the step left it, unless it has to wait there.
  [[nodiscard]] Slot sum() const noexcept { return n_push == 1 && !overlap ? kGrads : kAcc; }
};

class DownpourWorker final : public WorkerHalf {
 public:
  explicit DownpourWorker(const DownpourRule& rule) noexcept : rule_(rule) {}
  void on(const StepDone& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const Stopped& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) override;
  [[nodiscard]] std::string state() const override;
  [[nodiscard]] core::Result<void> restore(const std::string& text) override;

 private:
  void push(Step step, WorkerActions& then);
  void fetch(Step step, WorkerActions& then);

  DownpourRule rule_;
  Step summed_ = 0;  // steps in the sum
  bool pushing_ = false;
  bool fetching_ = false;
  bool stopped_ = false;
};

class DownpourServer final : public ServerHalf {
 public:
  /// `optimizer`: kind and constants of the server's; null: pushes are added.
  DownpourServer(std::optional<core::OptimizerStep> optimizer, bool staleness_aware) noexcept
      : optimizer_(optimizer), staleness_aware_(staleness_aware) {}
  void on(const Request& request, const ServerContext& context, ServerActions& then) override;
  void refused(const Request& request, const ServerContext& context, ServerActions& then) override;

 private:
  std::optional<core::OptimizerStep> optimizer_;
  bool staleness_aware_;
};

[[nodiscard]] StrategyInfo downpour();

}  // namespace troupe::strategies
