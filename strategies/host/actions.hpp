/// What a half can ask for. Actions run in list order. The builders read like the algorithm: then.apply(…); then.compute();
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "strategies/host/events.hpp"
#include "strategies/host/kernel_call.hpp"

namespace troupe::strategies {

// ---- worker half

/// Begin a step: the next one, or step `to` after passing over those between, whose batches are given up (Needs::in_step
/// only). A worker computes only when told so: this one rule expresses waiting and overlap.
struct Compute {
  std::optional<Step> to{};
  bool operator==(const Compute&) const = default;
};
/// Run a kernel on the worker's own slots, now: on the whole vectors, or on the slices that `shards` cut from them.
struct ApplyLocal {
  KernelCall call;
  Shards shards{};
  bool operator==(const ApplyLocal&) const = default;
};
/// Exchange `slot` with shards: it belongs to them until ExchangeDone{id}. In shared memory that is a loan, worked on in
/// place. So a half that waits names params themselves, and a half that computes meanwhile names a staged copy. `rounding`: what a wire
/// of 16 bits may do to it; a half says what it sends, and never sees a wire.
struct Exchange {
  ExchangeId id = 0;
  Transfer kind = Transfer::push_pull;
  Slot slot = kParams;
  Shards shards{};
  Rounding rounding = Rounding::both;
  bool operator==(const Exchange&) const = default;
};
enum class ReduceOp : std::uint8_t { sum, mean };
/// Workers that reduce together; empty means every member.
using Group = std::vector<WorkerId>;
/// Replace `slot` (bucket `bucket` of it, or all of it when negative) in every member of the group by the sum or mean over
/// the group, in rank order. Which algorithm moves the bytes is the port's business: results do not depend on it, but for the rounding
/// of a wire of 16 bits. `rounding`: both or none.
struct Reduce {
  ExchangeId id = 0;
  Slot slot = kGrads;
  int bucket = -1;
  ReduceOp op = ReduceOp::mean;
  Group group;
  Rounding rounding = Rounding::both;
  bool operator==(const Reduce&) const = default;
};
/// Replace `slot` in every member of the group by root's, to the bit.
struct Broadcast {
  ExchangeId id = 0;
  Slot slot = kParams;
  WorkerId root = 0;
  Group group;
  bool operator==(const Broadcast&) const = default;
};
/// Send a copy of `slot` with `weight`, to the bit; never waits. Without credit the port says so at once (PeerPort::send).
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
/// An exchange fell due and was left out, because the one before is still in flight. Counted.
struct Skip {
  bool operator==(const Skip&) const = default;
};

using WorkerAction = std::variant<Compute, ApplyLocal, Exchange, Reduce, Broadcast, SendPeer, SetDeadline, Skip>;

/// The list that a worker half fills. Reused from event to event, so a steady step allocates nothing here.
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
  void add(const WorkerAction& action) { list_.push_back(action); }  ///< what another half said

  [[nodiscard]] const std::vector<WorkerAction>& list() const noexcept { return list_; }
  void clear() noexcept { list_.clear(); }

 private:
  std::vector<WorkerAction> list_;
};

// ---- server half

/// Run `call` for each request in turn (kPayload is that request's), or once when there is none. If it writes the centre the
/// shard's version grows by one.
struct Apply {
  KernelCall call;
  std::vector<RequestId> requests;
  bool operator==(const Apply&) const = default;
};
/// Answer: the payload goes back as it is now.
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
/// Give the payload back unused. Counted, with the reason.
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
  void add(const ServerAction& action) { list_.push_back(action); }  ///< what another half said

  [[nodiscard]] const std::vector<ServerAction>& list() const noexcept { return list_; }
  void clear() noexcept { list_.clear(); }

 private:
  std::vector<ServerAction> list_;
};

}  // namespace troupe::strategies
