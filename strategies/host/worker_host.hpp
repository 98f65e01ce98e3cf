/// Executes a worker rule's actions through ports: fans exchanges out over shards, counts answers, keeps shard versions, holds
/// events that arrive during a step until its end, and measures how long the worker stood still and for which cause. No CAF, no
/// thread, no clock of its own. One thread. Calls ports in action order; never calls a rule from inside a rule.
///
/// At the end of a step the rule first receives the events that arrived during it, in order of arrival, then StepDone.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "strategies/host/accounts.hpp"
#include "strategies/host/observer.hpp"
#include "strategies/host/port.hpp"
#include "strategies/host/rule.hpp"

namespace troupe::strategies {

struct WorkerHostOptions {
  WorkerId self = 0;
  std::uint64_t seed = 1;
  Membership membership{};
  int buckets = 1;
  std::vector<Version> versions{};  ///< per shard, of the centre from which the worker starts; empty: all 0
  std::uint64_t optimizer_steps{};  ///< steps that made the optimizer state of the worker's start; 0: it is zero
};

/// Sums since the host began.
struct WorkerTotals {
  std::uint64_t exchanges = 0;  ///< with shards (one for all of them), collectives, and messages to peers
  std::uint64_t dropped = 0;    ///< by at least one shard, including refused ones
  std::uint64_t refused = 0;    ///< by shards: answers to pushes with unusable numbers
  std::uint64_t skipped = 0;
  std::uint64_t passed = 0;   ///< steps passed over
  Version staleness_sum = 0;  ///< over `updates`
  Version staleness_max = 0;
  std::uint64_t updates = 0;       ///< applied by shards: answers to all but pulls
  StalenessHistogram staleness{};  ///< of them
  Duration exchange{0};            ///< blocked while bytes moved or kernels ran
  Duration wait{0};                ///< blocked while waiting for others
  WaitAccount waits{};             ///< the same, by cause
  Duration local{0};               ///< kernels on the worker's own slots: the optimizer, copies, applying an answer

  /// Adds the totals of `other`, a former host of the same worker.
  void add(const WorkerTotals& other);
};

class WorkerHost {
 public:
  /// The methods throw std::logic_error for bugs, not for conditions of the run. The rule asks for a missing port, uses a slot that
  /// is lent or in use by the computation, asks for Compute twice, before StepDone, after Stopped or for a past step, or answers
  /// BucketReady with anything but Reduce of a ready bucket. The port answers a request that was not made, answers out of order, or
  /// calls from inside its own call.
  WorkerHost(std::unique_ptr<WorkerRule> rule, WorkerPorts ports, WorkerHostOptions options,
             WorkerObserver* observer = nullptr);

  // From the worker's port.
  /// Once.
  void start(Step step);
  /// During a step: for all its buckets, 0 first, or for none.
  void bucket_ready(int bucket);
  /// The host sets the number of the optimizer's step: it counts the steps that made the worker's own optimizer state. `t`: the
  /// number from a recording that used another count (journals of version 1).
  void step_done(double epoch, const core::OptimizerStep& optimizer, std::optional<std::uint64_t> t = {});
  /// Called instead of step_done(): there are no more batches. Later events go to the rule at once.
  void stop();
  void replied(const ShardReply& reply);
  /// A Reduce or Broadcast is done; this worker waited `waited` for `last`, the last member.
  void reduced(ExchangeId exchange, Duration waited, WorkerId last = 0);
  void peer_message_arrived(const PeerMessageArrived& message);
  void membership_changed(const Membership& membership);
  void deadline_passed(DeadlineId id);

  // For the start state of a journal segment: the worker was ordered to compute, and its step has not begun.
  /// Passes arrived events, except peer messages and skipped sends, to the rule now instead of at the step's end; the worker's
  /// vectors may change. The rule has asked for Compute and cannot ask for it again.
  void settle();
  /// True if the ordered step has not begun, no exchange is in flight, and only peer messages and skipped sends are unhandled.
  [[nodiscard]] bool settled() const noexcept;
  /// All that a new host needs to continue, as text, without peer messages: the port delivers them again. REQUIRES settled().
  [[nodiscard]] std::string state() const;
  /// Called instead of start(): the worker computes the step that was ordered. Errc::corrupt if `text` is not from state().
  [[nodiscard]] core::Result<void> restore(const std::string& text);

  [[nodiscard]] const WorkerTotals& totals() const noexcept { return totals_; }
  [[nodiscard]] Step steps() const noexcept { return step_; }  ///< completed or passed over
  /// Steps of the optimizer since its state was zero; steps passed over do not count.
  [[nodiscard]] std::uint64_t optimizer_steps() const noexcept { return optimizer_steps_; }
  [[nodiscard]] bool computing() const noexcept {
    return computing_;
  }  ///< Compute was ordered; step_done() or stop() is to come
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  [[nodiscard]] std::size_t in_flight() const noexcept { return pending_exchanges_.size(); }
  [[nodiscard]] const Membership& membership() const noexcept { return membership_; }
  /// The worker's share of the model: its rule's, plus the shares of skipped sends that the rule does not know of until the present
  /// step ends.
  [[nodiscard]] double weight() const noexcept;
  [[nodiscard]] const WorkerRule& rule() const noexcept { return *rule_; }
  [[nodiscard]] WorkerRule& rule() noexcept { return *rule_; }

 private:
  struct PendingExchange {  // one exchange or collective in flight
    Slot slot;
    int bucket = -1;  // of a Reduce; else negative: all of the slot
    bool collective = false;
    Transfer kind = Transfer::push_pull;
    Shards shards{};            // of an exchange; otherwise all of the slot
    std::vector<bool> waiting;  // per shard asked: its answer is missing
    ShardId parts_left = 0;
    Duration began{0};
    Wait wait;                  // the longest of its parts
    bool dropped = false;       // at least one part
    std::vector<Version> seen;  // per shard asked: the version of an answer that contains the centre
    ExchangeRecord record;
  };
  struct Reduced {
    ExchangeId exchange = 0;
    Duration waited{0};
    WorkerId last = 0;
  };
  /// The events that may arrive while the worker computes.
  using Arrival = std::variant<ShardReply, Reduced, PeerMessageArrived, SendSkipped, MembershipChanged, DeadlinePassed>;
  struct Late {
    Arrival arrival;
    Duration at{0};
  };

  void arrive(const Arrival& arrival);
  void tell_late();
  void handle(const ShardReply& reply, Duration at);
  void handle(const Reduced& reduced, Duration at);
  void handle(const PeerMessageArrived& message, Duration at);
  void handle(const SendSkipped& skipped, Duration at);
  void handle(const MembershipChanged& change, Duration at);
  void handle(const DeadlinePassed& deadline, Duration at);
  template <class Event>
  void tell(const Event& event);
  void execute(const Compute& action);
  void execute(const ApplyLocal& action);
  void execute(const Exchange& action);
  void execute(const Reduce& action);
  void execute(const Broadcast& action);
  void execute(const SendPeer& action);
  void execute(const SetDeadline& action);
  void execute(const Skip&);
  PendingExchange& begin_exchange(ExchangeId id, Slot slot, bool collective);
  void complete_exchange(ExchangeId id, Duration at);
  void require_free(Slot slot, const char* doing, int bucket = -1, Shards shards = {}) const;
  void require_exist(Shards shards, const char* doing) const;
  void require_still(Slot slot, const char* doing) const;
  void release_peer_messages();

  std::unique_ptr<WorkerRule> rule_;
  WorkerPorts ports_;
  WorkerHostOptions options_;
  WorkerObserver* observer_;
  Membership membership_;
  WorkerActions actions_;
  std::map<ExchangeId, PendingExchange> pending_exchanges_;  // ordered: iteration never depends on addresses
  std::vector<Version> versions_;                            // per shard, as last seen
  std::vector<Version> computed_on_;                         // per shard, as seen when the latest step began
  std::vector<Late> late_;                                   // arrived during the step; handled at its end in order
  std::vector<Late> telling_late_;                           // keeps its capacity
  std::vector<SendSkipped> skipped_sends_;                   // of the actions being executed
  std::vector<Slot> peer_slots_;                             // peers' vectors that the rule may still read
  WorkerTotals totals_;
  Step step_ = 0;
  std::uint64_t optimizer_steps_ = 0;
  double epoch_ = 0;
  float lr_ = 0;
  int buckets_told_ = 0;  // of the step under way
  bool started_ = false;
  bool computing_ = false;
  bool ending_ = false;  // between the end of a step (or stop()) and StepDone (Stopped)
  bool stopped_ = false;
  bool telling_ = false;
  bool in_bucket_ = false;
  bool blocked_ = false;  // neither computing nor ordered to
  Duration blocked_since_{0};
  struct Waited {
    Duration time{0};  // the last part of `wait`
    Wait wait;
  };
  std::vector<Waited> waited_;  // while it stood still: the longest of simultaneous ones
  Duration waited_until_{0};    // when the last of the simultaneous exchanges ended
  Duration local_{0};           // own kernels since blocked_since_: work, not waiting
};

}  // namespace troupe::strategies
