/// Downpour SGD (Dean et al. 2012): workers train independently. Every n_push steps a worker pushes its sum, and every n_fetch
/// steps it replaces its parameters by the centre. No worker waits for another worker.
///
///   server_optimizer = none   a worker steps locally and sums its steps;      the server: c ← c + acc
///   otherwise                 a worker sums raw gradients and does not step;  the server: one optimizer step with acc / steps
///                             (not divided by the number of workers: lr accounts for that)
///   staleness_aware           the server divides the step by max(1, staleness)                    (Zhang et al. 2015b)
///
/// Without overlap a worker waits for the server's answer; in one process the server works on the worker's memory in place. With
/// overlap the worker sends a copy and continues. A transfer that is due while one of the same kind is in flight is skipped and
/// counted. The sum keeps growing meanwhile, so no step is lost.
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
  /// The slot of the sum. A sum of one step stays in the slot of that step, unless overlap needs the slot for the next step.
  [[nodiscard]] Slot sum() const noexcept { return n_push == 1 && !overlap ? kGrads : kAcc; }
};

class DownpourWorker final : public WorkerRule {
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

class DownpourServer final : public ServerRule {
 public:
  /// `optimizer`: kind and constants of the server's optimizer; null: pushes are added to the centre.
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
