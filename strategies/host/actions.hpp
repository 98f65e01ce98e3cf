/// The actions of the two rules. A host executes them in list order. The builders read like the algorithm: then.apply(…);
/// then.compute();
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "strategies/host/events.hpp"
#include "strategies/host/kernel_call.hpp"

namespace troupe::strategies {

// ---- worker rule

/// Begin a step: the next one, or step `to`, which passes over the steps between and gives up their batches (Needs::in_step only).
/// A worker computes only after this action; this one action expresses both waiting and overlap.
struct Compute {
  std::optional<Step> to{};
  bool operator==(const Compute&) const = default;
};
/// Run a kernel on the worker's own slots at once: on the whole vectors, or on the slices that `shards` cut from them.
struct ApplyLocal {
  KernelCall call;
  Shards shards{};
  bool operator==(const ApplyLocal&) const = default;
};
/// Exchange `slot` with shards; the slot belongs to the shards until ExchangeDone{id}. In shared memory they borrow it and work in
/// place, so a rule that waits names params, and a rule that computes meanwhile names a staged copy. `rounding`: what a 16-bit wire
/// may round. A rule states what it sends and never sees a wire.
struct Exchange {
  ExchangeId id = 0;
  Transfer kind = Transfer::push_pull;
  Slot slot = kParams;
  Shards shards{};
  Rounding rounding = Rounding::both;
  bool operator==(const Exchange&) const = default;
};
enum class ReduceOp : std::uint8_t { sum, mean };
/// The workers that reduce together; empty means all members.
using Group = std::vector<WorkerId>;
/// Replace `slot` (bucket `bucket` of it, or all of it if negative) in every member of the group by the sum or mean over the group,
/// in rank order. The port chooses the algorithm. The result does not depend on it, except for the rounding of a 16-bit wire.
/// `rounding`: both or none.
struct Reduce {
  ExchangeId id = 0;
  Slot slot = kGrads;
  int bucket = -1;
  ReduceOp op = ReduceOp::mean;
  Group group;
  Rounding rounding = Rounding::both;
  bool operator==(const Reduce&) const = default;
};
/// Replace `slot` in every member of the group by root's, bit for bit.
struct Broadcast {
  ExchangeId id = 0;
  Slot slot = kParams;
  WorkerId root = 0;
  Group group;
  bool operator==(const Broadcast&) const = default;
};
/// Send an exact copy of `slot` with `weight`; never waits. Without credit the port reports it at once (PeerPort::send).
struct SendPeer {
  WorkerId to = 0;
  Slot slot = kParams;
  double weight = 0;
  bool operator==(const SendPeer&) const = default;
};
struct SetDeadline {
  DeadlineId id = 0;
  Duration after{0};
  bool operator==(const SetDeadline&) const = default;
};
/// An exchange was due and is left out, because the one before is still in flight. The host counts it.
struct Skip {
  bool operator==(const Skip&) const = default;
};

using WorkerAction = std::variant<Compute, ApplyLocal, Exchange, Reduce, Broadcast, SendPeer, SetDeadline, Skip>;

/// The list that a worker rule fills. Reused for every event, so a steady step allocates nothing here.
class WorkerActions {
 public:
  void compute() { list_.emplace_back(Compute{}); }
  void compute_at(Step step) { list_.emplace_back(Compute{step}); }
  void apply(const KernelCall& call, Shards shards = {}) { list_.emplace_back(ApplyLocal{call, shards}); }
  void push(ExchangeId id, Slot slot, Shards shards = {}) {
    list_.emplace_back(Exchange{id, Transfer::push, slot, shards});
  }
  void pull(ExchangeId id, Slot slot, Shards shards = {}) {
    list_.emplace_back(Exchange{id, Transfer::pull, slot, shards});
  }
  void push_pull(ExchangeId id, Slot slot, Shards shards = {}, Rounding rounding = Rounding::both) {
    list_.emplace_back(Exchange{id, Transfer::push_pull, slot, shards, rounding});
  }
  void reduce(ExchangeId id, Slot slot, ReduceOp op, int bucket = -1, Group group = {},
              Rounding rounding = Rounding::both) {
    list_.emplace_back(Reduce{id, slot, bucket, op, std::move(group), rounding});
  }
  void broadcast(ExchangeId id, Slot slot, WorkerId root, Group group = {}) {
    list_.emplace_back(Broadcast{id, slot, root, std::move(group)});
  }
  void send(WorkerId to, Slot slot, double weight) { list_.emplace_back(SendPeer{to, slot, weight}); }
  void set_deadline(DeadlineId id, Duration after) { list_.emplace_back(SetDeadline{id, after}); }
  void skip() { list_.emplace_back(Skip{}); }
  void add(const WorkerAction& action) { list_.push_back(action); }  ///< an action of an inner rule

  [[nodiscard]] const std::vector<WorkerAction>& list() const noexcept { return list_; }
  void clear() noexcept { list_.clear(); }

 private:
  std::vector<WorkerAction> list_;
};

// ---- server rule

/// Run `call` for each request in turn (kPayload is that request's payload), or once without requests. If it writes the centre, the
/// shard's version grows by one.
struct Apply {
  KernelCall call;
  std::vector<RequestId> requests;
  bool operator==(const Apply&) const = default;
};
/// Answer: the payload goes back with its present contents.
struct Reply {
  RequestId request = 0;
  Step min_clock = 0;
  bool operator==(const Reply&) const = default;
};
/// Keep the request for a later Reply or Drop.
struct Hold {
  RequestId request = 0;
  bool operator==(const Hold&) const = default;
};
/// Return the payload unused. The host counts it, with the reason.
struct Drop {
  RequestId request = 0;
  std::string why;
  bool operator==(const Drop&) const = default;
};

using ServerAction = std::variant<Apply, Reply, Hold, Drop, SetDeadline>;

class ServerActions {
 public:
  void apply(const KernelCall& call, RequestId request) { list_.emplace_back(Apply{call, {request}}); }
  void apply(const KernelCall& call, std::vector<RequestId> requests) {
    list_.emplace_back(Apply{call, std::move(requests)});
  }
  void apply(const KernelCall& call) { list_.emplace_back(Apply{call, {}}); }
  void reply(RequestId request, Step min_clock = 0) { list_.emplace_back(Reply{request, min_clock}); }
  void hold(RequestId request) { list_.emplace_back(Hold{request}); }
  void drop(RequestId request, std::string why) { list_.emplace_back(Drop{request, std::move(why)}); }
  void set_deadline(DeadlineId id, Duration after) { list_.emplace_back(SetDeadline{id, after}); }
  void add(const ServerAction& action) { list_.push_back(action); }  ///< an action of an inner rule

  [[nodiscard]] const std::vector<ServerAction>& list() const noexcept { return list_; }
  void clear() noexcept { list_.clear(); }

 private:
  std::vector<ServerAction> list_;
};

}  // namespace troupe::strategies
