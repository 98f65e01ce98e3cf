/// The two rules of a strategy. Pure state machines: events in, actions out; no clock, no thread, no logging, no numbers. Owned by
/// one host and called from its thread. A rule ignores an event that it does not override.
#pragma once

#include <string>

#include "core/error.hpp"
#include "core/random.hpp"
#include "strategies/host/actions.hpp"
#include "strategies/host/events.hpp"
#include "strategies/host/state_text.hpp"

namespace troupe::strategies {

/// What a rule may read besides the event.
struct WorkerContext {
  WorkerId self = 0;
  const Membership& membership;
  std::uint64_t seed = 0;
  Step step = 0;  ///< steps completed or passed over
  /// Random numbers of this worker at this step: the same in a replay.
  [[nodiscard]] core::Random random() const noexcept {
    return {seed, core::Purpose::strategy, (std::uint64_t{self} << 40) | step};
  }
  /// Random numbers of round `round`, the same for every worker. They differ from every worker's own: no worker has rank 2²⁴ − 1.
  [[nodiscard]] core::Random shared_random(std::uint64_t round) const noexcept {
    return {seed, core::Purpose::strategy, (std::uint64_t{0xffffff} << 40) | round};
  }
};
struct ServerContext {
  ShardId self = 0;
  const Membership& membership;
  Version version = 0;  ///< of the shard
};

class WorkerRule {
 public:
  virtual ~WorkerRule() = default;
  /// The default begins the first step: most strategies do nothing before it.
  virtual void on(const Started&, const WorkerContext&, WorkerActions& then) { then.compute(); }
  virtual void on(const BucketReady&, const WorkerContext&, WorkerActions&) {}
  virtual void on(const StepDone&, const WorkerContext&, WorkerActions& then) = 0;
  virtual void on(const Stopped&, const WorkerContext&, WorkerActions&) {}
  virtual void on(const Replied&, const WorkerContext&, WorkerActions&) {}
  virtual void on(const ExchangeDone&, const WorkerContext&, WorkerActions&) {}
  virtual void on(const PeerMessageArrived&, const WorkerContext&, WorkerActions&) {}
  virtual void on(const SendSkipped&, const WorkerContext&, WorkerActions&) {}
  virtual void on(const MembershipChanged&, const WorkerContext&, WorkerActions&) {}
  virtual void on(const DeadlinePassed&, const WorkerContext&, WorkerActions&) {}

  /// a_i, this worker's share of the model (ModelHome::weighted). Read between two steps; 1 where all shares are equal.
  [[nodiscard]] virtual double weight() const noexcept { return 1; }

  /// The rule's own state as compact text, for the start state of a journal segment and for a checkpoint. Called after Compute or
  /// Stopped, with no exchange in flight; state that matters only in between may be left out. A rule without state returns an empty
  /// text.
  [[nodiscard]] virtual std::string state() const { return {}; }
  /// Puts a fresh rule into the state of the rule that wrote `text`. Errc::corrupt if no rule of this kind writes such a text.
  [[nodiscard]] virtual core::Result<void> restore(const std::string& text) { return read_state(text, {}); }
};

class ServerRule {
 public:
  virtual ~ServerRule() = default;
  virtual void on(const Request&, const ServerContext&, ServerActions& then) = 0;
  virtual void on(const MembershipChanged&, const ServerContext&, ServerActions&) {}
  virtual void on(const DeadlinePassed&, const ServerContext&, ServerActions&) {}

  /// Called instead of on() when the push contains unusable numbers (ServerPort::usable). For clocks and rounds it counts and is
  /// answered like any request, or workers would wait for ever. It must add nothing to the centre and the state vectors. The
  /// default sets the payload to zeros first, which adds nothing to a sum. Where workers send parameters, the neutral payload is
  /// the centre itself.
  virtual void refused(const Request& request, const ServerContext& context, ServerActions& then);

  /// As for a worker rule. Called when no request is held.
  [[nodiscard]] virtual std::string state() const { return {}; }
  [[nodiscard]] virtual core::Result<void> restore(const std::string& text) { return read_state(text, {}); }
};

}  // namespace troupe::strategies
