/// The events of the two rules. Events are plain values. A replay needs only their journal, in the order in which a rule consumed
/// them. Encoded form: docs/formats/journal.md.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "core/kernels.hpp"
#include "strategies/host/types.hpp"

namespace troupe::strategies {

// ---- worker rule

/// The worker may begin. Parameters are in place; `step` > 0 after a resume.
struct Started {
  Step step = 0;
  bool operator==(const Started&) const = default;
};
/// During a step: bucket `bucket` of `buckets` is final. Buckets come in backward order, 0 first. The only allowed action is
/// Reduce.
struct BucketReady {
  Step step = 0;
  int bucket = 0;
  int buckets = 1;
  bool operator==(const BucketReady&) const = default;
};
/// The gradients of `step` are final, and no update has been applied. `optimizer` is the local step that the training settings give
/// for this lease, with the learning rate; `epoch` is the lease's position in the run, in epochs.
struct StepDone {
  Step step = 0;
  double epoch = 0;
  core::OptimizerStep optimizer{};
  bool operator==(const StepDone&) const = default;
};
/// There is no batch for the step that Compute asked for, and none for a later step. The rule sends what it has not pushed yet (for
/// example a sum). Compute is not allowed any more; exchanges in flight still end.
struct Stopped {
  Step step = 0;
  bool operator==(const Stopped&) const = default;
};
/// One shard has answered its part of exchange `exchange`. `version` is the shard's after it; `min_clock` is the value of the
/// server rule's Reply.
struct Replied {
  ExchangeId exchange = 0;
  ShardId shard = 0;
  Version version = 0;
  Step min_clock = 0;
  bool operator==(const Replied&) const = default;
};
/// Every part of an Exchange, Reduce or Broadcast (actions.hpp) is done, and its slot belongs to the worker again. `dropped`: at least
/// one shard dropped its part.
struct ExchangeDone {
  ExchangeId exchange = 0;
  bool dropped = false;
  bool operator==(const ExchangeDone&) const = default;
};
/// A peer's vector has arrived in `slot`, a staged slot that the port chose. The rule may read it until the next StepDone or
/// Stopped has been handled (after Stopped: until this event has been handled). So a rule can apply it after the local step.
struct PeerMessageArrived {
  WorkerId from = 0;
  double weight = 0;
  Slot slot = staged(0);
  bool operator==(const PeerMessageArrived&) const = default;
};
/// A SendPeer found no credit: nothing was sent, and the sender keeps the weight. Comes before the next StepDone.
struct SendSkipped {
  WorkerId to = 0;
  double weight = 0;
  bool operator==(const SendSkipped&) const = default;
};

// ---- both rules

struct MembershipChanged {
  Membership membership;
  bool operator==(const MembershipChanged&) const = default;
};
struct DeadlinePassed {
  DeadlineId id = 0;
  bool operator==(const DeadlinePassed&) const = default;
};

// ---- server rule

enum class Transfer : std::uint8_t { push, pull, push_pull };

/// A worker's part of an exchange has arrived at a shard.
struct Request {
  RequestId id = 0;
  WorkerId worker = 0;
  ExchangeId exchange = 0;
  Transfer kind = Transfer::push_pull;
  Step clock = 0;       ///< the worker's completed steps
  Version version = 0;  ///< of this shard, as the worker saw it when its latest step began
  double epoch = 0;     ///< the worker's position in the run, in epochs; schedules use it
  float lr = 0;         ///< the worker's learning rate now
  bool operator==(const Request&) const = default;
};

using WorkerEvent = std::variant<Started, BucketReady, StepDone, Stopped, Replied, ExchangeDone, PeerMessageArrived,
                                 SendSkipped, MembershipChanged, DeadlinePassed>;
using ServerEvent = std::variant<Request, MembershipChanged, DeadlinePassed>;

}  // namespace troupe::strategies
