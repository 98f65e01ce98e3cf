/// What a host needs from the world: the only thing that actors, simulator, replay and schedule search implement.
/// A port is called from its host's thread only. It may answer at once or later, but never from inside the call: an answer
/// is a new call of the host (WorkerHost::replied, ServerHost::request, …) on the same thread.
/// Interfaces are split by what a strategy may need, so no port has a method that it cannot serve (Needs in strategy.hpp).
#pragma once

#include <cstdint>
#include <optional>

#include "core/clock.hpp"
#include "strategies/host/actions.hpp"
#include "strategies/host/events.hpp"

namespace troupe::strategies {

/// Every worker has these. Later answers: bucket_ready()* and step_done(), or stop(); deadline_passed().
class WorkerPort {
 public:
  virtual ~WorkerPort() = default;
  [[nodiscard]] virtual Duration now() const = 0;
  /// Take the batch of `step`, the next one or a later one, and compute its gradients; the batches of the steps between are
  /// given up. Nothing else touches params, grads (but for buckets that are ready) and statistics meanwhile. Without a batch,
  /// now or ever: WorkerHost::stop().
  virtual void compute(Step step) = 0;
  /// Run `call` on this worker's slots before returning: on the whole of them, or on the part that `shards` are cut from (all
  /// slots of a call have the arena's length then). Whoever owns params is told that they changed.
  virtual void run(const KernelCall& call, Shards shards) = 0;
  virtual void set_deadline(DeadlineId id, Duration after) = 0;
};

/// One worker's part of an exchange with one shard, on its way there.
struct ShardRequest {
  ShardId shard = 0;
  Request request;      // id is for the server's port to set, from 1
  Slot slot = kParams;  // whose slice travels
  Rounding rounding = Rounding::both;
};

/// For strategies with servers. Later answer: WorkerHost::replied(), once per request, also for a dropped one. Until then the
/// slice belongs to the exchange: in shared memory the server works on it in place, elsewhere the port carries it there and
/// back (host and half make sure that nobody else touches it). `dropped` is what a server half says; nobody answers for a server that
/// is lost: a part of the centre is gone with it, and the run ends. Requests of one worker reach a shard in the order in which they were
/// sent (a pull after a push finds it there); between shards, and for replies, no order is promised.
class ShardPort {
 public:
  virtual ~ShardPort() = default;
  [[nodiscard]] virtual ShardId shards() const = 0;
  virtual void send(const ShardRequest& request) = 0;
};

/// For strategies with collectives. Later answer: WorkerHost::reduced(); until then the slot, or the bucket of it, belongs to
/// the collective. Every member of the group asks for the same collectives in the same order; `step` and `id` pair them up.
/// A collective that a lost member keeps from ending is not answered: the coordinator starts the others anew, each with a
/// fresh WorkerHost, from one that completed the newest step.
class GroupPort {
 public:
  virtual ~GroupPort() = default;
  virtual void reduce(Step step, const Reduce& reduce) = 0;
  virtual void broadcast(Step step, const Broadcast& broadcast) = 0;
};

/// For strategies whose workers write to each other. The copy is taken before send() returns. At the other end the port
/// chooses a staged slot that the strategy does not name (kFirstPeerSlot) and tells WorkerHost::peer_mail(). What was sent arrives once,
/// unless its sender, its reader or what connects them is lost.
class PeerPort {
 public:
  virtual ~PeerPort() = default;
  /// False: nothing was sent. The peer is none that this worker may write to (PeerGraph), has not released the letter before, or there
  /// is no memory for the copy. Never waits.
  [[nodiscard]] virtual bool send(const SendPeer& message) = 0;
  /// The mail in `slot` has been read: the slot is the port's again, and its sender may write the next.
  virtual void release(Slot slot) = 0;
};

/// What one worker's host is given; the last three as its strategy needs them, else null.
struct WorkerPorts {
  WorkerPort& worker;
  ShardPort* shards = nullptr;
  GroupPort* group = nullptr;
  PeerPort* peers = nullptr;
};

/// The answer to a worker's part of an exchange, on its way back.
struct ShardReply {
  RequestId request = 0;
  WorkerId worker = 0;
  ShardId shard = 0;
  ExchangeId exchange = 0;
  Version version = 0;    ///< of the shard, after the exchange
  Version staleness = 0;  ///< versions that the worker had not seen when its request was handled
  Step min_clock = 0;
  bool dropped = false;
  bool refused = false;  ///< what was pushed held numbers that cannot be used, and changed nothing
  Duration queued{0};    ///< from sending, or from arriving in the server's process, until the server turned to it
  Duration held{0};      ///< from then to the event that answered it: waiting for others
  std::optional<WorkerId> last{};  ///< whose request that event was; none: another event
  bool operator==(const ShardReply&) const = default;
};

/// Every server has these. Later answers: ServerHost::request(), deadline_passed().
class ServerPort {
 public:
  virtual ~ServerPort() = default;
  [[nodiscard]] virtual Duration now() const = 0;
  /// Whether training has a use for every number of the payload (core::kLargestUsable). A function of the numbers, so that a replay
  /// decides alike; where there are none, as in virtual time, every payload is usable. Costs a pass over the payload.
  [[nodiscard]] virtual bool usable(RequestId payload) const = 0;
  /// Run `call` before returning; kPayload is that of `payload`, which is a request not yet replied to. With 0 the call names
  /// no kPayload.
  virtual void run(const KernelCall& call, RequestId payload) = 0;
  /// The payload goes back to its worker and is not the server's any more. For a worker that is gone, it just ends.
  virtual void reply(const ShardReply& reply) = 0;
  virtual void set_deadline(DeadlineId id, Duration after) = 0;
};

}  // namespace troupe::strategies
