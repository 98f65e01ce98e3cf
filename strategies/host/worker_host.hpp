/// Executes a worker half's actions through ports: fans exchanges out over shards, counts answers, keeps shard versions,
/// holds what arrives during a step until its end, and measures who stood still for how long.
/// No CAF, no thread, no clock of its own. One thread. Asks ports in action order; never calls a half from inside a half.
#pragma once

#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "strategies/host/half.hpp"
#include "strategies/host/observer.hpp"
#include "strategies/host/port.hpp"

namespace troupe::strategies {

struct WorkerHostOptions {
  WorkerId self = 0;
  std::uint64_t seed = 1;
  Membership membership;
  int buckets = 1;
};

/// Sums since the host began.
struct WorkerTotals {
  std::uint64_t exchanges = 0;
  std::uint64_t dropped = 0;
  std::uint64_t skipped = 0;
  Version staleness_sum = 0;    ///< over `parts`
  Version staleness_max = 0;
  std::uint64_t parts = 0;
  Duration exchange{0};         ///< blocked, and bytes or kernels were being worked on
  Duration wait{0};             ///< blocked, and waiting for others
  Duration local{0};            ///< kernels on the worker's own slots: the optimizer, copies, what an answer changes
};

class WorkerHost {
 public:
  /// Throws std::logic_error when the half asks for a port that is not there, computes while a slot of its own is lent, or
  /// answers BucketReady with anything but Reduce: bugs in the strategy, not conditions of the run.
  WorkerHost(std::unique_ptr<WorkerHalf> half, WorkerPorts ports, WorkerHostOptions options, WorkerObserver* observer = nullptr);

  // From the worker's port.
  void start(Step step);
  void bucket_ready(int bucket);
  void step_done(double epoch, const core::OptimizerStep& optimizer);
  void replied(const ShardReply& reply);
  /// A Reduce or Broadcast is done; `waited` is how long the last member let the others wait.
  void reduced(ExchangeId exchange, Duration waited);
  void peer_mail(const PeerMail& mail);
  void membership_changed(const Membership& membership);
  void deadline_passed(DeadlineId id);

  [[nodiscard]] const WorkerTotals& totals() const noexcept { return totals_; }
  [[nodiscard]] Step steps() const noexcept { return step_; }             ///< completed
  [[nodiscard]] bool computing() const noexcept { return computing_; }    ///< Compute was said and step_done() is to come
  [[nodiscard]] std::size_t in_flight() const noexcept { return flights_.size(); }
  [[nodiscard]] const Membership& membership() const noexcept { return membership_; }
  [[nodiscard]] const WorkerHalf& half() const noexcept { return *half_; }
  [[nodiscard]] WorkerHalf& half() noexcept { return *half_; }

 private:
  struct Flight {               // one exchange or collective under way
    Slot slot;
    bool collective = false;
    Duration began{0};
    ShardId parts_left = 0;
    Duration held{0};           // the longest that a part of it waited for others
    ExchangeRecord record;
  };
  struct Reduced {
    ExchangeId exchange = 0;
    Duration waited{0};
  };
  /// What may arrive while the worker computes.
  using Arrival = std::variant<ShardReply, Reduced, PeerMail, MembershipChanged, DeadlinePassed>;

  void arrive(const Arrival& arrival);
  void handle(const ShardReply& reply);
  void handle(const Reduced& reduced);
  void handle(const PeerMail& mail);
  void handle(const MembershipChanged& change);
  void handle(const DeadlinePassed& deadline);
  template <class Event>
  void tell(const Event& event);
  void execute(const Compute&);
  void execute(const ApplyLocal& action);
  void execute(const Exchange& action);
  void execute(const Reduce& action);
  void execute(const Broadcast& action);
  void execute(const SendPeer& action);
  void execute(const SetDeadline& action);
  void execute(const Skip&);
  void take_off(ExchangeId id, Slot slot, bool collective, ShardId parts);
  void land(ExchangeId id);
  void require_free(Slot slot, const char* doing) const;

  std::unique_ptr<WorkerHalf> half_;
  WorkerPorts ports_;
  WorkerHostOptions options_;
  WorkerObserver* observer_;
  Membership membership_;
  WorkerActions actions_;
  std::map<ExchangeId, Flight> flights_;   // ordered: iteration never depends on addresses
  std::vector<Version> versions_;          // per shard, as last seen
  std::vector<Arrival> late_;              // during the step, told at its end in order of arrival
  WorkerTotals totals_;
  Step step_ = 0;
  double epoch_ = 0;
  float lr_ = 0;
  bool computing_ = false;
  bool in_bucket_ = false;
  bool blocked_ = false;                   // neither computing nor told to
  Duration blocked_since_{0};
  Duration longest_wait_{0};               // of the exchanges that ended since blocked_since_
  Duration local_{0};                      // own kernels since blocked_since_: work, not standing still
};

}  // namespace troupe::strategies
