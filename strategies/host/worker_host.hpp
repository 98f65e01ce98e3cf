/// Executes a worker half's actions through ports: fans exchanges out over shards, counts answers, keeps shard versions,
/// holds what arrives during a step until its end, and measures who stood still for how long.
/// No CAF, no thread, no clock of its own. One thread. Asks ports in action order; never calls a half from inside a half.
///
/// At the end of a step the half is told first what arrived during it, in order of arrival, then StepDone.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "strategies/host/accounts.hpp"
#include "strategies/host/half.hpp"
#include "strategies/host/observer.hpp"
#include "strategies/host/port.hpp"

namespace troupe::strategies {

struct WorkerHostOptions {
  WorkerId self = 0;
  std::uint64_t seed = 1;
  Membership membership{};
  int buckets = 1;
  std::vector<Version> versions{};  ///< per shard, of the centre that the worker starts from; empty: all 0
  std::uint64_t optimizer_steps{};  ///< that made the optimizer's state with which the worker starts; 0: it is zero
};

/// Sums since the host began.
struct WorkerTotals {
  std::uint64_t exchanges = 0;  ///< with all shards asked, collectives, and messages to peers
  std::uint64_t dropped = 0;    ///< by a shard at least, those that it refused included
  std::uint64_t refused = 0;    ///< by shards: answers to pushes with numbers that cannot be used
  std::uint64_t skipped = 0;
  std::uint64_t passed = 0;   ///< steps passed over
  Version staleness_sum = 0;  ///< over `updates`
  Version staleness_max = 0;
  std::uint64_t updates = 0;       ///< applied by shards: answers that were no mere pull
  StalenessHistogram staleness{};  ///< of them
  Duration exchange{0};            ///< blocked, and bytes or kernels were being worked on
  Duration wait{0};                ///< blocked, and waiting for others
  WaitAccount waits{};             ///< the same, by cause
  Duration local{0};               ///< kernels on the worker's own slots: the optimizer, copies, what an answer changes

  /// As if `other` had gone on where these end: a worker's former lives.
  void add(const WorkerTotals& other);
};

class WorkerHost {
 public:
  /// Throws std::logic_error when the half asks for a port that is not there, uses a slot that is lent or being computed with,
  /// says Compute twice, before StepDone, after Stopped or of a step that is over, or answers BucketReady with anything but Reduce of a ready bucket;
  /// and when the port answers what was not asked, out of order, or from inside its own call. Bugs, not conditions of the run.
  WorkerHost(std::unique_ptr<WorkerHalf> half, WorkerPorts ports, WorkerHostOptions options,
             WorkerObserver* observer = nullptr);

  // From the worker's port.
  /// Once.
  void start(Step step);
  /// During a step, of all its buckets, 0 first; or of none.
  void bucket_ready(int bucket);
  /// The number of the optimizer's step is the host's to set: it counts the steps that made the worker's own optimizer state. `t`:
  /// the number that a recording has, where another count was in use (journals of version 1).
  void step_done(double epoch, const core::OptimizerStep& optimizer, std::optional<std::uint64_t> t = {});
  /// Instead of a step: there are no batches any more. What arrives from now on is told at once.
  void stop();
  void replied(const ShardReply& reply);
  /// A Reduce or Broadcast is done; `waited` is how long `last`, the last member, let this one wait.
  void reduced(ExchangeId exchange, Duration waited, WorkerId last = 0);
  void peer_mail(const PeerMail& mail);
  void membership_changed(const Membership& membership);
  void deadline_passed(DeadlineId id);

  // For the start state of a journal segment: the worker was told to compute, and its step has not begun.
  /// Tells what has arrived, mail excepted, now instead of at the step's end; the worker's vectors may change by it. The half has
  /// said Compute and cannot say it again.
  void settle();
  /// Neither computing nor waiting for anyone: settled, and nothing in flight. Mail may lie unread.
  [[nodiscard]] bool settled() const noexcept;
  /// Everything that a new host needs to go on, as text; but not mail, which is the port's to deliver again. REQUIRES settled().
  [[nodiscard]] std::string state() const;
  /// Instead of start(): the worker computes the step that it was told to. Errc::corrupt when `text` is no state().
  [[nodiscard]] core::Result<void> restore(const std::string& text);

  [[nodiscard]] const WorkerTotals& totals() const noexcept { return totals_; }
  [[nodiscard]] Step steps() const noexcept { return step_; }  ///< completed or passed over
  /// Steps of the optimizer since its state was zero: none is one that passed without it.
  [[nodiscard]] std::uint64_t optimizer_steps() const noexcept { return optimizer_steps_; }
  [[nodiscard]] bool computing() const noexcept {
    return computing_;
  }  ///< Compute was said; step_done() or stop() is to come
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  [[nodiscard]] std::size_t in_flight() const noexcept { return flights_.size(); }
  [[nodiscard]] const Membership& membership() const noexcept { return membership_; }
  /// The worker's share of the model: its half's, and what skipped sends give back, of which the half is told when the step under
  /// way ends.
  [[nodiscard]] double weight() const noexcept;
  [[nodiscard]] const WorkerHalf& half() const noexcept { return *half_; }
  [[nodiscard]] WorkerHalf& half() noexcept { return *half_; }

 private:
  struct Flight {  // one exchange or collective under way
    Slot slot;
    int bucket = -1;  // of a Reduce; else negative: all of the slot
    bool collective = false;
    Transfer kind = Transfer::push_pull;
    Shards shards{};            // of an exchange; else all of the slot
    std::vector<bool> waiting;  // per shard asked: its answer is to come
    ShardId parts_left = 0;
    Duration began{0};
    Wait wait;                  // the longest of its parts
    bool dropped = false;       // a part of it
    std::vector<Version> seen;  // per shard asked, of an answer with the centre in it
    ExchangeRecord record;
  };
  struct Reduced {
    ExchangeId exchange = 0;
    Duration waited{0};
    WorkerId last = 0;
  };
  /// What may arrive while the worker computes.
  using Arrival = std::variant<ShardReply, Reduced, PeerMail, SendSkipped, MembershipChanged, DeadlinePassed>;
  struct Late {
    Arrival arrival;
    Duration at{0};
  };

  void arrive(const Arrival& arrival);
  void tell_late();
  void handle(const ShardReply& reply, Duration at);
  void handle(const Reduced& reduced, Duration at);
  void handle(const PeerMail& mail, Duration at);
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
  Flight& take_off(ExchangeId id, Slot slot, bool collective);
  void land(ExchangeId id, Duration at);
  void require_free(Slot slot, const char* doing, int bucket = -1, Shards shards = {}) const;
  void require_exist(Shards shards, const char* doing) const;
  void require_still(Slot slot, const char* doing) const;
  void release_mail();

  std::unique_ptr<WorkerHalf> half_;
  WorkerPorts ports_;
  WorkerHostOptions options_;
  WorkerObserver* observer_;
  Membership membership_;
  WorkerActions actions_;
  std::map<ExchangeId, Flight> flights_;    // ordered: iteration never depends on addresses
  std::vector<Version> versions_;           // per shard, as last seen
  std::vector<Version> computed_on_;        // per shard, as seen when the latest step began
  std::vector<Late> late_;                  // during the step, told at its end in order of arrival
  std::vector<Late> telling_late_;          // its memory, kept
  std::vector<SendSkipped> skipped_sends_;  // of the actions being executed
  std::vector<Slot> mail_;                  // peers' vectors that the half may still read
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
  bool blocked_ = false;  // neither computing nor told to
  Duration blocked_since_{0};
  struct Waited {
    Duration time{0};  // the last part of `wait`
    Wait wait;
  };
  std::vector<Waited> waited_;  // while it stood still: of flights at the same time the longest
  Duration waited_until_{0};    // when the last of those at the same time landed
  Duration local_{0};           // own kernels since blocked_since_: work, not standing still
};

}  // namespace troupe::strategies
