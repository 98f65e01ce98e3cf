/// What a half can be told. Events are plain values: a journal of them, in the order in which a half consumed them, is all
/// that a replay needs. Format of the encoded form: docs/formats/journal.md.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "core/kernels.hpp"
#include "strategies/host/types.hpp"

namespace troupe::strategies {

// ---- worker half

/// The worker may begin. Parameters are in place; `step` > 0 after a resume.
struct Started {
  Step step = 0;
  bool operator==(const Started&) const = default;
};
/// During a step: bucket `bucket` of `buckets` is final. Buckets come in backward order, 0 first. Only Reduce may answer it.
struct BucketReady {
  Step step = 0;
  int bucket = 0;
  int buckets = 1;
  bool operator==(const BucketReady&) const = default;
};
/// Gradients of `step` are final and nothing has been applied. `optimizer` is the local step that the training settings
/// prescribe at this lease (learning rate included); `epoch` is the lease's position in the run, in epochs.
struct StepDone {
  Step step = 0;
  double epoch = 0;
  core::OptimizerStep optimizer{};
  bool operator==(const StepDone&) const = default;
};
/// There is no batch for the step that Compute asked for: it will not be taken, and no other. The place to hand in what is
/// left (a sum that was not pushed yet); Compute may not be said any more, and what is in flight still comes back.
struct Stopped {
  Step step = 0;
  bool operator==(const Stopped&) const = default;
};
/// One shard has answered a part of exchange `exchange`. `version` is the shard's afterwards; `min_clock` what the half
/// there chose to say.
struct Replied {
  ExchangeId exchange = 0;
  ShardId shard = 0;
  Version version = 0;
  Step min_clock = 0;
  bool operator==(const Replied&) const = default;
};
/// Every part of a Push, Pull, PushPull, Reduce or Broadcast is done and its slot is the worker's own again.
/// `dropped`: at least one shard dropped its part.
struct ExchangeDone {
  ExchangeId exchange = 0;
  bool dropped = false;
  bool operator==(const ExchangeDone&) const = default;
};
/// A peer's vector has arrived in `slot`: a staged one that the port chose, the half's to read until the next StepDone or
/// Stopped has been handled (once stopped: until this event has been). So mail may wait for the local step it comes after.
struct PeerMail {
  WorkerId from = 0;
  double weight = 0;
  Slot slot = staged(0);
  bool operator==(const PeerMail&) const = default;
};
/// A SendPeer found no credit: nothing was sent, and its weight is still the sender's. Told before the next StepDone.
struct SendSkipped {
  WorkerId to = 0;
  double weight = 0;
  bool operator==(const SendSkipped&) const = default;
};

// ---- both halves

struct MembershipChanged {
  Membership membership;
  bool operator==(const MembershipChanged&) const = default;
};
struct DeadlinePassed {
  DeadlineId id = 0;
  bool operator==(const DeadlinePassed&) const = default;
};

// ---- server half

enum class Transfer : std::uint8_t { push, pull, push_pull };

/// A worker's part of an exchange has arrived at a shard.
struct Request {
  RequestId id = 0;
  WorkerId worker = 0;
  ExchangeId exchange = 0;
  Transfer kind = Transfer::push_pull;
  Step clock = 0;       ///< the worker's completed steps
  Version version = 0;  ///< of this shard as the worker had seen it when its latest step began
  double epoch = 0;     ///< the worker's position in the run, in epochs: what schedules read
  float lr = 0;         ///< the worker's learning rate now
  bool operator==(const Request&) const = default;
};

using WorkerEvent = std::variant<Started, BucketReady, StepDone, Stopped, Replied, ExchangeDone, PeerMail, SendSkipped,
                                 MembershipChanged, DeadlinePassed>;
using ServerEvent = std::variant<Request, MembershipChanged, DeadlinePassed>;

}  // namespace troupe::strategies
