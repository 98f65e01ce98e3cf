/// The two halves of a strategy. Pure state machines: events in, actions out; no clock, no thread, no logging, no numbers.
/// Owned by one host and called from its thread. An event that a half does not override leaves it as it is.
#pragma once

#include <string>

#include "core/error.hpp"
#include "core/random.hpp"
#include "strategies/host/actions.hpp"
#include "strategies/host/events.hpp"
#include "strategies/host/state_text.hpp"

namespace troupe::strategies {

/// What a half may look at besides the event.
struct WorkerContext {
  WorkerId self = 0;
  const Membership& membership;
  std::uint64_t seed = 0;
  Step step = 0;  ///< steps completed or passed over
  /// Randomness of this worker at this step: the same in a replay.
  [[nodiscard]] core::Random random() const noexcept {
    return {seed, core::Purpose::strategy, (std::uint64_t{self} << 40) | step};
  }
  /// Randomness of round `round` that every worker draws alike. No worker's own: none has rank 2²⁴ − 1.
  [[nodiscard]] core::Random shared_random(std::uint64_t round) const noexcept {
    return {seed, core::Purpose::strategy, (std::uint64_t{0xffffff} << 40) | round};
  }
};
struct ServerContext {
  ShardId self = 0;
  const Membership& membership;
  Version version = 0;  ///< of the shard
};

class WorkerHalf {
 public:
  virtual ~WorkerHalf() = default;
  /// The default begins the first step: most strategies have nothing to do before it.
  virtual void on(const Started&, const WorkerContext&, WorkerActions& then) { then.compute(); }
  virtual void on(const BucketReady&, const WorkerContext&, WorkerActions&) {}
  virtual void on(const StepDone&, const WorkerContext&, WorkerActions& then) = 0;
  virtual void on(const Stopped&, const WorkerContext&, WorkerActions&) {}
  virtual void on(const Replied&, const WorkerContext&, WorkerActions&) {}
  virtual void on(const ExchangeDone&, const WorkerContext&, WorkerActions&) {}
  virtual void on(const PeerMail&, const WorkerContext&, WorkerActions&) {}
  virtual void on(const SendSkipped&, const WorkerContext&, WorkerActions&) {}
  virtual void on(const MembershipChanged&, const WorkerContext&, WorkerActions&) {}
  virtual void on(const DeadlinePassed&, const WorkerContext&, WorkerActions&) {}

  /// a_i, this worker's share of the model (ModelHome::weighted): asked between two steps, 1 where all are equal.
  [[nodiscard]] virtual double weight() const noexcept { return 1; }

  /// The half's own memory as compact text, for a journal segment's start state and a checkpoint. Asked when a step has been
  /// ordered or there are no more, and nothing is in flight: what matters only in between need not be in it. Halves without
  /// memory say nothing.
  [[nodiscard]] virtual std::string state() const { return {}; }
  /// Makes a fresh half go on as the one that said `text` would. Errc::corrupt when no half of this kind ever said it.
  [[nodiscard]] virtual core::Result<void> restore(const std::string& text) { return read_state(text, {}); }
};

class ServerHalf {
 public:
  virtual ~ServerHalf() = default;
  virtual void on(const Request&, const ServerContext&, ServerActions& then) = 0;
  virtual void on(const MembershipChanged&, const ServerContext&, ServerActions&) {}
  virtual void on(const DeadlinePassed&, const ServerContext&, ServerActions&) {}

  /// Instead of on(): what is pushed holds numbers that cannot be used (ServerPort::usable). To clocks and rounds it is a request like
  /// another and is answered like one, or they would wait for ever; to the centre and the state vectors it adds nothing. The default
  /// makes zeros of the payload first: no part of any sum. Where workers send parameters, what adds nothing is the centre itself.
  virtual void refused(const Request& request, const ServerContext& context, ServerActions& then);

  /// As a worker half's. Asked when no request is held.
  [[nodiscard]] virtual std::string state() const { return {}; }
  [[nodiscard]] virtual core::Result<void> restore(const std::string& text) { return read_state(text, {}); }
};

}  // namespace troupe::strategies
