/// What a host needs from its environment: actors, simulator, replay and schedule search implement only this. A port is called from
/// its host's thread only. It may answer at once or later, but never from inside the call: an answer is a new call of the host
/// (WorkerHost::replied, ServerHost::request, …) on the same thread. Each interface covers one need of a strategy, so a port
/// implements all methods that it has (Needs in strategy.hpp).
#pragma once

#include <cstdint>
#include <optional>

#include "core/clock.hpp"
#include "strategies/host/actions.hpp"
#include "strategies/host/events.hpp"

namespace troupe::strategies {

/// Every worker has this port. Later answers: bucket_ready()* and step_done(), or stop(); deadline_passed().
class WorkerPort {
 public:
  virtual ~WorkerPort() = default;
  [[nodiscard]] virtual Duration now() const = 0;
  /// Take the batch of `step` (the next one or a later one) and compute its gradients; batches of the steps between are given up.
  /// Meanwhile no other code touches params, grads (except ready buckets) and statistics. If there is no batch and none will come,
  /// the answer is WorkerHost::stop().
  virtual void compute(Step step) = 0;
  /// Run `call` on this worker's slots before returning: on the whole slots, or on the part that `shards` are cut from (then all
  /// slots of the call have the arena's length). The port notifies the owner of params of a change.
  virtual void run(const KernelCall& call, Shards shards) = 0;
  virtual void set_deadline(DeadlineId id, Duration after) = 0;
};

/// One worker's part of an exchange with one shard, on its way there.
struct ShardRequest {
  ShardId shard = 0;
  Request request;      // the server's port sets the id, from 1
  Slot slot = kParams;  // the slot whose slice travels
  Rounding rounding = Rounding::both;
};

/// For strategies with servers. Later answer: WorkerHost::replied(), once per request, also for a dropped one. Until then the slice
/// belongs to the exchange. In shared memory the server works on it in place; otherwise the port carries it there and back. Host
/// and rule ensure that no other code touches it. `dropped` is a decision of the server rule. Requests to a lost server get no
/// answer: a part of the centre is lost with it, and the run ends. The requests of one worker reach a shard in the order of sending
/// (a pull sees an earlier push). Between shards, and for replies, no order is guaranteed.
class ShardPort {
 public:
  virtual ~ShardPort() = default;
  [[nodiscard]] virtual ShardId shards() const = 0;
  virtual void send(const ShardRequest& request) = 0;
};

/// For strategies with collectives. Later answer: WorkerHost::reduced(); until then the slot, or its bucket, belongs to the
/// collective. Every member of the group asks for the same collectives in the same order; `step` and `id` match them. A collective
/// that cannot end because a member is lost gets no answer. A real run then ends (exit code 75). Only `troupe simulate` restarts the
/// other members, with fresh hosts, at the newest completed step.
class GroupPort {
 public:
  virtual ~GroupPort() = default;
  virtual void reduce(Step step, const Reduce& reduce) = 0;
  virtual void broadcast(Step step, const Broadcast& broadcast) = 0;
};

/// For strategies whose workers write to each other. send() takes the copy before it returns. At the other end the port chooses a
/// staged slot that the strategy does not use (kFirstPeerSlot) and calls WorkerHost::peer_message_arrived(). A message arrives once, unless
/// its sender, its reader or their connection is lost.
class PeerPort {
 public:
  virtual ~PeerPort() = default;
  /// False: nothing was sent, because the PeerGraph does not allow this peer, the peer has not released the message before, or
  /// there is no memory for the copy. Never waits.
  [[nodiscard]] virtual bool send(const SendPeer& message) = 0;
  /// The message in `slot` has been read: the slot belongs to the port again, and its sender may send the next message.
  virtual void release(Slot slot) = 0;
};

/// The ports of one worker's host. The last three are null unless the strategy needs them.
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
  Version staleness = 0;  ///< versions that the worker had not seen when the server handled its request
  Step min_clock = 0;
  bool dropped = false;
  bool refused = false;  ///< the push contained unusable numbers and changed nothing
  Duration queued{0};    ///< from sending, or from arrival in the server's process, until the server began to handle it
  Duration held{0};      ///< from then until the event that answered it: waiting for other workers
  std::optional<WorkerId> last{};  ///< the worker whose request was that event; none: another event
  bool operator==(const ShardReply&) const = default;
};

/// Every server has this port. Later answers: ServerHost::request(), deadline_passed().
class ServerPort {
 public:
  virtual ~ServerPort() = default;
  [[nodiscard]] virtual Duration now() const = 0;
  /// Whether every number of the payload is usable (core::kLargestUsable). A function of the numbers, so that a replay decides
  /// alike. Where there are no numbers, as in virtual time, every payload is usable. Costs a pass over the payload.
  [[nodiscard]] virtual bool usable(RequestId payload) const = 0;
  /// Run `call` before returning. kPayload is the payload of the request `payload`, which has not been answered yet. With 0 the
  /// call uses no kPayload.
  virtual void run(const KernelCall& call, RequestId payload) = 0;
  /// The payload goes back to its worker and no longer belongs to the server. If the worker is lost, the payload is discarded.
  virtual void reply(const ShardReply& reply) = 0;
  virtual void set_deadline(DeadlineId id, Duration after) = 0;
};

}  // namespace troupe::strategies
