#include "strategies/host/worker_host.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::strategies {

namespace {

/// The slots that a step reads or writes; no other code may touch them meanwhile.
bool computed_with(Slot slot) noexcept {
  return slot.kind == SlotKind::params || slot.kind == SlotKind::grads || slot.kind == SlotKind::statistics;
}

}  // namespace

void WorkerTotals::add(const WorkerTotals& other) {
  exchanges += other.exchanges;
  dropped += other.dropped;
  refused += other.refused;
  skipped += other.skipped;
  passed += other.passed;
  staleness_sum += other.staleness_sum;
  staleness_max = std::max(staleness_max, other.staleness_max);
  updates += other.updates;
  staleness.add(other.staleness);
  exchange += other.exchange;
  wait += other.wait;
  waits.add(other.waits);
  local += other.local;
}

WorkerHost::WorkerHost(std::unique_ptr<WorkerRule> rule, WorkerPorts ports, WorkerHostOptions options,
                       WorkerObserver* observer)
    : rule_(std::move(rule)),
      ports_(ports),
      options_(std::move(options)),
      observer_(observer),
      membership_(options_.membership),
      versions_(options_.versions),
      optimizer_steps_(options_.optimizer_steps) {
  versions_.resize(ports_.shards ? ports_.shards->shards() : 0);
  computed_on_ = versions_;
}

// ---- calls of the port

void WorkerHost::start(Step step) {
  if (std::exchange(started_, true)) throw std::logic_error("worker host: started twice");
  step_ = step;
  tell(Started{step});
}

void WorkerHost::bucket_ready(int bucket) {
  if (!computing_) throw std::logic_error("worker host: a bucket became ready outside a step");
  if (bucket != buckets_told_ || bucket >= options_.buckets) {
    throw std::logic_error("worker host: bucket " + std::to_string(bucket) + " of " + std::to_string(options_.buckets) +
                           " became ready out of order");
  }
  ++buckets_told_;
  in_bucket_ = true;
  tell(BucketReady{step_, bucket, options_.buckets});
  in_bucket_ = false;
}

void WorkerHost::step_done(double epoch, const core::OptimizerStep& optimizer, std::optional<std::uint64_t> t) {
  if (!computing_) throw std::logic_error("worker host: a step ended that had not begun");
  if (buckets_told_ != 0 && buckets_told_ != options_.buckets)
    throw std::logic_error("worker host: a step ended before its last bucket was ready");
  buckets_told_ = 0;
  computing_ = false;
  blocked_ = true;
  blocked_since_ = ports_.worker.now();
  waited_.clear();
  waited_until_ = local_ = Duration{0};
  epoch_ = epoch;
  lr_ = optimizer.lr;
  tell_late();
  const Step done = step_++;
  auto numbers = optimizer;
  numbers.t = t.value_or(optimizer_steps_ + 1);
  tell(StepDone{done, epoch, numbers});
  release_peer_messages();
}

void WorkerHost::stop() {
  if (!computing_) throw std::logic_error("worker host: stopped, but it had not asked for a batch");
  if (buckets_told_ != 0) throw std::logic_error("worker host: stopped inside a step");
  computing_ = false;
  tell_late();
  stopped_ = true;
  tell(Stopped{step_});
  release_peer_messages();
}

/// Before StepDone: an answer that is applied now makes room for the exchange that this step may begin.
void WorkerHost::tell_late() {
  ending_ = true;
  telling_late_.swap(late_);
  for (const auto& late : telling_late_) std::visit([&](const auto& a) { handle(a, late.at); }, late.arrival);
  telling_late_.clear();
  ending_ = false;
}

void WorkerHost::replied(const ShardReply& reply) { arrive(reply); }
void WorkerHost::reduced(ExchangeId exchange, Duration waited, WorkerId last) {
  arrive(Reduced{exchange, waited, last});
}
void WorkerHost::peer_message_arrived(const PeerMessageArrived& message) { arrive(message); }
void WorkerHost::membership_changed(const Membership& membership) { arrive(MembershipChanged{membership}); }
void WorkerHost::deadline_passed(DeadlineId id) { arrive(DeadlinePassed{id}); }

void WorkerHost::arrive(const Arrival& arrival) {
  const auto now = ports_.worker.now();
  if (computing_) {
    late_.push_back({arrival, now});
  } else {
    std::visit([&](const auto& a) { handle(a, now); }, arrival);
  }
}

void WorkerHost::handle(const ShardReply& reply, Duration at) {
  const auto found = pending_exchanges_.find(reply.exchange);
  const auto awaited = [&](const PendingExchange& pending_exchange) {
    const std::size_t part =
        reply.shard - pending_exchange.shards.first;  // a shard below the first wraps around to an index out of range
    return part < pending_exchange.waiting.size() && pending_exchange.waiting[part];
  };
  if (found == pending_exchanges_.end() || found->second.collective || !awaited(found->second)) {
    throw std::logic_error("worker host: shard " + std::to_string(reply.shard) +
                           " answered what it was not asked, or twice");
  }
  auto& pending_exchange = found->second;
  pending_exchange.waiting[reply.shard - pending_exchange.shards.first] = false;
  // Only an answer that contains the centre shows the worker a version. Replies may overtake each other.
  if (pending_exchange.kind != Transfer::push && !reply.dropped)
    pending_exchange.seen[reply.shard - pending_exchange.shards.first] = reply.version;
  const Cause holder = reply.last ? Cause{Cause::Kind::worker, *reply.last} : Cause{Cause::Kind::server, reply.shard};
  const Wait wait{.queued = reply.queued, .server = reply.shard, .held = reply.held, .holder = holder};
  if (wait.total() > pending_exchange.wait.total()) pending_exchange.wait = wait;
  auto& record = pending_exchange.record;
  pending_exchange.dropped |= reply.dropped;
  totals_.refused += reply.refused ? 1 : 0;
  if (reply.dropped || reply.refused) {
    record.outcome = ExchangeOutcome::dropped;
  } else if (pending_exchange.kind != Transfer::pull) {
    record.staleness_sum += reply.staleness;
    record.staleness_max = std::max(record.staleness_max, reply.staleness);
    ++record.updates;
    totals_.staleness.add(reply.staleness);
  }
  const bool last = --pending_exchange.parts_left == 0;
  tell(Replied{reply.exchange, reply.shard, reply.version, reply.min_clock});
  if (last) complete_exchange(reply.exchange, at);
}

void WorkerHost::handle(const Reduced& reduced, Duration at) {
  const auto found = pending_exchanges_.find(reduced.exchange);
  if (found == pending_exchanges_.end() || !found->second.collective) {
    throw std::logic_error("worker host: a collective ended that is not in flight");
  }
  found->second.wait = {.held = reduced.waited, .holder = {Cause::Kind::worker, reduced.last}};
  complete_exchange(reduced.exchange, at);
}

void WorkerHost::handle(const PeerMessageArrived& message, Duration) {
  if (!ports_.peers) throw std::logic_error("worker host: a peer message, but the strategy declared none");
  peer_slots_.push_back(message.slot);
  tell(message);
  if (stopped_) release_peer_messages();
}

void WorkerHost::handle(const SendSkipped& skipped, Duration) { tell(skipped); }

void WorkerHost::handle(const MembershipChanged& change, Duration) {
  membership_ = change.membership;
  tell(change);
}

void WorkerHost::handle(const DeadlinePassed& deadline, Duration) { tell(deadline); }

void WorkerHost::release_peer_messages() {
  for (const Slot slot : peer_slots_) ports_.peers->release(slot);
  peer_slots_.clear();
}

/// The exchange is over, and its slot belongs to the worker again. Its last answer came `at`, perhaps during a step that has ended.
void WorkerHost::complete_exchange(ExchangeId id, Duration at) {
  const auto node = pending_exchanges_.extract(id);
  const auto& pending_exchange = node.mapped();
  for (std::size_t part = 0; part < pending_exchange.seen.size(); ++part) {
    auto& version = versions_[pending_exchange.shards.first + part];
    version = std::max(version, pending_exchange.seen[part]);
  }
  auto record = pending_exchange.record;
  record.transfer = at - pending_exchange.began;
  record.delay = step_ - record.step;
  if (blocked_) {
    record.blocked = std::max(at - std::max(blocked_since_, pending_exchange.began), Duration{0});
    record.wait = std::min(pending_exchange.wait.total(), record.blocked);
    // Simultaneous waits count once, as long as the longest; successive waits add up.
    if (waited_.empty() || std::max(blocked_since_, pending_exchange.began) >= waited_until_) waited_.emplace_back();
    waited_until_ = std::max(waited_until_, at);
    if (record.wait > waited_.back().time) waited_.back() = {record.wait, pending_exchange.wait};
  }
  const bool dropped = record.outcome == ExchangeOutcome::dropped;
  ++(dropped ? totals_.dropped : totals_.exchanges);
  totals_.staleness_sum += record.staleness_sum;
  totals_.staleness_max = std::max(totals_.staleness_max, record.staleness_max);
  totals_.updates += record.updates;
  if (observer_) observer_->exchanged(record);
  tell(ExchangeDone{id, pending_exchange.dropped});  // the worker can use the answer to a refused push
}

// ---- actions of the rule

template <class Event>
void WorkerHost::tell(const Event& event) {
  if (telling_) throw std::logic_error("worker host: called from inside a port's call");
  telling_ = true;
  if (observer_) observer_->consumed(event);
  const WorkerContext context{options_.self, membership_, options_.seed, step_};
  actions_.clear();
  rule_->on(event, context, actions_);
  for (const auto& action : actions_.list()) {
    if (in_bucket_ && !std::holds_alternative<Reduce>(action)) {
      throw std::logic_error("strategy: BucketReady may be answered by Reduce only");
    }
    std::visit([this](const auto& a) { execute(a); }, action);
  }
  telling_ = false;
  if (skipped_sends_.empty()) return;
  for (const auto& skipped : std::exchange(skipped_sends_, {})) arrive(skipped);
}

void WorkerHost::execute(const Compute& action) {
  if (computing_) throw std::logic_error("strategy: Compute while a step is under way");
  if (ending_) throw std::logic_error("strategy: Compute before StepDone was handled");
  if (stopped_) throw std::logic_error("strategy: Compute after Stopped");
  const Step to = action.to.value_or(step_);
  if (to < step_) throw std::logic_error("strategy: Compute of a step that is over");
  for (const auto& [id, pending_exchange] : pending_exchanges_) {
    if (computed_with(pending_exchange.slot)) require_free(pending_exchange.slot, "Compute");
  }
  if (blocked_) {
    const auto stood = ports_.worker.now() - blocked_since_ - local_;
    auto left = stood;
    for (const auto& [time, wait] : waited_) {
      const auto waited = std::min(left, time);
      totals_.wait += waited;
      totals_.waits.add(waited, wait);
      left -= waited;
    }
    totals_.exchange += left;
    blocked_ = false;
  }
  computing_ = true;
  computed_on_ = versions_;
  totals_.passed += to - std::exchange(step_, to);
  ports_.worker.compute(step_);
}

void WorkerHost::execute(const ApplyLocal& action) {
  require_exist(action.shards, "ApplyLocal");
  if (!action.shards.all() && needs_whole(action.call))
    throw std::logic_error("strategy: ApplyLocal of a norm over some shards only");
  for (const Slot slot : {action.call.y, action.call.x, action.call.z}) {
    if (!action.shards.all() && slot == kStatistics)
      throw std::logic_error("strategy: statistics are not cut into shards");
    require_free(slot, "ApplyLocal", -1, action.shards);
    require_still(slot, "ApplyLocal");
  }
  const auto began = ports_.worker.now();
  ports_.worker.run(action.call, action.shards);
  if (steps_optimizer(action.call)) optimizer_steps_ = action.call.optimizer.t;
  const auto took = ports_.worker.now() - began;
  local_ += took;
  totals_.local += took;
}

void WorkerHost::execute(const Exchange& action) {
  if (!ports_.shards || ports_.shards->shards() == 0)
    throw std::logic_error("strategy: an exchange with servers, but it declared none");
  const Shards shards = action.shards.all() ? Shards{0, ports_.shards->shards()} : action.shards;
  require_exist(shards, "Exchange");
  require_free(action.slot, "Exchange", -1, shards);
  require_still(action.slot, "Exchange");
  auto& pending_exchange = begin_exchange(action.id, action.slot, false);
  pending_exchange.kind = action.kind;
  pending_exchange.shards = shards;
  pending_exchange.waiting.assign(shards.count, true);
  pending_exchange.seen.assign(shards.count, 0);
  pending_exchange.parts_left = shards.count;
  for (ShardId shard = shards.first; shard < shards.first + shards.count; ++shard) {
    const Request request{.worker = options_.self,
                          .exchange = action.id,
                          .kind = action.kind,
                          .clock = step_,
                          .version = computed_on_[shard],
                          .epoch = epoch_,
                          .lr = lr_};
    ports_.shards->send({.shard = shard, .request = request, .slot = action.slot, .rounding = action.rounding});
  }
}

void WorkerHost::execute(const Reduce& action) {
  if (!ports_.group) throw std::logic_error("strategy: Reduce, but it declared no group");
  require_free(action.slot, "Reduce", action.bucket);
  if (!in_bucket_) require_still(action.slot, "Reduce");
  if (in_bucket_ && (action.slot != kGrads || action.bucket < 0 || action.bucket >= buckets_told_)) {
    throw std::logic_error("strategy: Reduce of what is not a bucket of gradients that is ready");
  }
  begin_exchange(action.id, action.slot, true).bucket = action.bucket;
  ports_.group->reduce(step_, action);
}

void WorkerHost::execute(const Broadcast& action) {
  if (!ports_.group) throw std::logic_error("strategy: Broadcast, but it declared no group");
  require_free(action.slot, "Broadcast");
  require_still(action.slot, "Broadcast");
  begin_exchange(action.id, action.slot, true);
  ports_.group->broadcast(step_, action);
}

void WorkerHost::execute(const SendPeer& action) {
  if (!ports_.peers) throw std::logic_error("strategy: SendPeer, but it declared no peers");
  require_free(action.slot, "SendPeer");
  require_still(action.slot, "SendPeer");
  if (!ports_.peers->send(action)) {
    skipped_sends_.push_back({action.to, action.weight});
    return execute(Skip{});
  }
  ++totals_.exchanges;
  if (observer_) observer_->exchanged({.worker = options_.self, .step = step_});
}

void WorkerHost::execute(const SetDeadline& action) { ports_.worker.set_deadline(action.id, action.after); }

void WorkerHost::execute(const Skip&) {
  ++totals_.skipped;
  if (observer_) observer_->exchanged({.worker = options_.self, .step = step_, .outcome = ExchangeOutcome::skipped});
}

WorkerHost::PendingExchange& WorkerHost::begin_exchange(ExchangeId id, Slot slot, bool collective) {
  const auto [place, fresh] = pending_exchanges_.try_emplace(id);
  if (!fresh) throw std::logic_error("strategy: exchange id " + std::to_string(id) + " is already in flight");
  auto& pending_exchange = place->second;
  pending_exchange.slot = slot;
  pending_exchange.collective = collective;
  pending_exchange.began = ports_.worker.now();
  pending_exchange.record.worker = options_.self;
  pending_exchange.record.step = step_;
  pending_exchange.record.exchange = id;
  return pending_exchange;
}

/// Throws if an exchange holds the slot. Different buckets of one slot do not overlap, nor do disjoint shards.
void WorkerHost::require_free(Slot slot, const char* doing, int bucket, Shards shards) const {
  for (const auto& [id, pending_exchange] : pending_exchanges_) {
    const bool apart = (bucket >= 0 && pending_exchange.bucket >= 0 && bucket != pending_exchange.bucket) ||
                       !shards.meet(pending_exchange.shards);
    if (pending_exchange.slot == slot && !apart) {
      throw std::logic_error(std::string("strategy: ") + doing + " needs a slot that exchange " + std::to_string(id) +
                             " has borrowed");
    }
  }
}

void WorkerHost::require_exist(Shards shards, const char* doing) const {
  if (shards.all()) return;
  const ShardId there = ports_.shards ? ports_.shards->shards() : 0;
  if (shards.count > there || shards.first > there - shards.count)
    throw std::logic_error(std::string("strategy: ") + doing + " with shards that do not exist");
}

/// Throws if a step is using the slot.
void WorkerHost::require_still(Slot slot, const char* doing) const {
  if (computing_ && computed_with(slot))
    throw std::logic_error(std::string("strategy: ") + doing + " of a slot that the step under way uses");
}

}  // namespace troupe::strategies
