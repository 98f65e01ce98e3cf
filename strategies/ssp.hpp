/// Stale-synchronous parallel (Ho et al. 2013): workers run ahead of each other by at most s clocks. A clock is
/// steps_per_clock local steps; c_i counts the clocks that worker i has completed.
///
///   write   at the end of a clock a worker pushes the sum of its steps: c ← c + acc
///   read    worker i may begin clock c_i on parameters that hold every update of a clock ≤ c_i − s − 1, and its own. Parameters
///           that it read when the minimum clock was m hold all clocks below m: good while m ≥ c_i − s. Else it pulls, and the
///           shard holds the pull until the minimum has come so far.
///
/// So c_i − min_j c_j ≤ s whenever a clock begins. s = 0 is bulk-synchronous with a server; s large is Downpour. Leases are equal
/// shares: with leases on demand a worker without one would hold up those who still have some.
///
/// Messages: a request and a reply per shard and clock to push, and the same for every pull: with equal speeds every s + 1
/// clocks. Bytes per clock and worker for P parameters: 4P, and 4P per pull. Staleness: at most (N − 1)(2 s + 2) + s + 1 versions of a
/// shard with N workers between two looks at it. A lost member leaves the minimum at once; what it pushed stays.
/// A newcomer (Needs::takes_newcomers) begins with x = c at the clock that all have completed, and counts as having completed the same.
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

class SspWorker final : public WorkerHalf {
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
  Step answered_ = 0;    // of the pull in flight: the least that a shard said
  Step summed_ = 0;      // steps in the sum
  bool pushing_ = false;
  bool due_ = false;  // a clock has ended and the push of the one before is still in flight
  bool stopped_ = false;
};

class SspServer final : public ServerHalf {
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
  Group members_;                    // as it knew them at the latest event; none: it has heard nothing yet
  std::vector<Request> held_;        // pulls, in order of arrival
};

[[nodiscard]] StrategyInfo ssp();

}  // namespace troupe::strategies
