/// Stale-synchronous parallel (Ho et al. 2013): a worker may be at most s clocks ahead of another. A clock is steps_per_clock local
/// steps; c_i counts the clocks that worker i has completed.
///
///   write   at the end of a clock a worker pushes the sum of its steps: c ← c + acc
///   read    worker i may begin clock c_i on parameters that contain every update of a clock ≤ c_i − s − 1, and its own. Parameters
///           that it read at minimum clock m contain all clocks below m: valid while m ≥ c_i − s. Otherwise the worker pulls, and the
///           shard holds the pull until the minimum clock is high enough.
///
/// So c_i − min_j c_j ≤ s whenever a clock begins. s = 0 is bulk-synchronous training with a server; a large s is Downpour. Leases
/// are equal shares: with leases on demand, a worker without a lease would block the workers that have one.
///
/// Messages: a request and a reply per shard and clock to push, and the same for every pull: at equal speeds every s + 1 clocks.
/// Bytes per clock and worker for P parameters: 4P, and 4P per pull. Staleness: at most (N − 1)(2 s + 2) + s + 1 versions of a
/// shard with N workers between two reads of it. A lost member leaves the minimum at once; its pushes stay. A newcomer
/// (Needs::takes_newcomers) begins with x = c at the clock that all workers have completed, and counts that clock as completed.
#pragma once

#include <map>

#include "strategies/strategy.hpp"

namespace troupe::strategies {

struct SspConfig {
  std::int64_t s = 3;
  std::int64_t steps_per_clock = 1;
  std::string overlap = "off";
};

struct SspRule {
  Step s = 3;
  Step steps_per_clock = 1;
  bool overlap = false;
  [[nodiscard]] Slot sum() const noexcept { return steps_per_clock == 1 ? kGrads : kAcc; }
};

class SspWorker final : public WorkerRule {
 public:
  explicit SspWorker(const SspRule& rule) noexcept : rule_(rule) {}
  void on(const StepDone& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const Stopped& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const Replied& event, const WorkerContext& context, WorkerActions& then) override;
  void on(const ExchangeDone& event, const WorkerContext& context, WorkerActions& then) override;
  [[nodiscard]] std::string state() const override;
  [[nodiscard]] core::Result<void> restore(const std::string& text) override;

 private:
  void end_clock(Step steps, WorkerActions& then);
  void push(Step steps, WorkerActions& then);
  void begin_clock(Step steps, WorkerActions& then);

  SspRule rule_;
  Step read_clock_ = 0;  // minimum clock when the parameters were read
  Step answered_ = 0;    // of the pull in flight: the lowest minimum clock that a shard reported
  Step summed_ = 0;      // steps in the sum
  bool pushing_ = false;
  bool due_ = false;  // a clock has ended and the push of the previous clock is still in flight
  bool stopped_ = false;
};

class SspServer final : public ServerRule {
 public:
  explicit SspServer(const SspRule& rule) noexcept : rule_(rule) {}
  void on(const Request& request, const ServerContext& context, ServerActions& then) override;
  void on(const MembershipChanged& event, const ServerContext& context, ServerActions& then) override;
  [[nodiscard]] std::string state() const override;
  [[nodiscard]] core::Result<void> restore(const std::string& text) override;

 private:
  void welcome(const Membership& membership);
  void release(const Membership& membership, ServerActions& then);

  SspRule rule_;
  std::map<WorkerId, Step> clocks_;  // completed
  Group members_;                    // the members at the latest event; empty before the first event
  std::vector<Request> held_;        // pulls, in order of arrival
};

[[nodiscard]] StrategyInfo ssp();

}  // namespace troupe::strategies
