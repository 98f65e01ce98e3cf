#include "strategies/host/worker_host.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::strategies {

WorkerHost::WorkerHost(std::unique_ptr<WorkerHalf> half, WorkerPorts ports, WorkerHostOptions options, WorkerObserver* observer)
    : half_(std::move(half)), ports_(ports), options_(std::move(options)), observer_(observer), membership_(options_.membership),
      versions_(ports_.shards ? ports_.shards->shards() : 0) {}

// ---- what the port says

void WorkerHost::start(Step step) {
  step_ = step;
  tell(Started{step});
}

void WorkerHost::bucket_ready(int bucket) {
  if (!computing_) throw std::logic_error("worker host: a bucket became ready outside a step");
  in_bucket_ = true;
  tell(BucketReady{step_, bucket, options_.buckets});
  in_bucket_ = false;
}

void WorkerHost::step_done(double epoch, const core::OptimizerStep& optimizer) {
  if (!computing_) throw std::logic_error("worker host: a step ended that had not begun");
  computing_ = false;
  blocked_ = true;
  blocked_since_ = ports_.worker.now();
  longest_wait_ = local_ = Duration{0};
  epoch_ = epoch;
  lr_ = optimizer.lr;
  // First what came during the step: an answer that is applied now frees the way for the exchange that this step may begin.
  const auto late = std::exchange(late_, {});
  for (const auto& arrival : late) std::visit([this](const auto& a) { handle(a); }, arrival);
  const Step done = step_++;
  tell(StepDone{done, epoch, optimizer});
}

void WorkerHost::replied(const ShardReply& reply) { arrive(reply); }
void WorkerHost::reduced(ExchangeId exchange, Duration waited) { arrive(Reduced{exchange, waited}); }
void WorkerHost::peer_mail(const PeerMail& mail) { arrive(mail); }
void WorkerHost::membership_changed(const Membership& membership) { arrive(MembershipChanged{membership}); }
void WorkerHost::deadline_passed(DeadlineId id) { arrive(DeadlinePassed{id}); }

void WorkerHost::arrive(const Arrival& arrival) {
  if (computing_) {
    late_.push_back(arrival);
  } else {
    std::visit([this](const auto& a) { handle(a); }, arrival);
  }
}

void WorkerHost::handle(const ShardReply& reply) {
  const auto found = flights_.find(reply.exchange);
  if (found == flights_.end() || found->second.collective || found->second.parts_left == 0) {
    throw std::logic_error("worker host: shard " + std::to_string(reply.shard) + " answered an exchange that is not in flight");
  }
  auto& flight = found->second;
  versions_.at(reply.shard) = reply.version;
  flight.held = std::max(flight.held, reply.held);
  auto& record = flight.record;
  if (reply.dropped) {
    record.outcome = Outcome::dropped;
  } else {
    record.staleness_sum += reply.staleness;
    record.staleness_max = std::max(record.staleness_max, reply.staleness);
    ++record.parts;
  }
  const bool last = --flight.parts_left == 0;
  tell(Replied{reply.exchange, reply.shard, reply.version, reply.min_clock});
  if (last) land(reply.exchange);
}

void WorkerHost::handle(const Reduced& reduced) {
  const auto found = flights_.find(reduced.exchange);
  if (found == flights_.end() || !found->second.collective) {
    throw std::logic_error("worker host: a collective ended that is not in flight");
  }
  found->second.held = std::max(found->second.held, reduced.waited);
  land(reduced.exchange);
}

void WorkerHost::handle(const PeerMail& mail) { tell(mail); }
void WorkerHost::handle(const MembershipChanged& change) {
  membership_ = change.membership;
  tell(change);
}
void WorkerHost::handle(const DeadlinePassed& deadline) { tell(deadline); }

/// The exchange is over and its slot is the worker's again.
void WorkerHost::land(ExchangeId id) {
  const auto node = flights_.extract(id);
  const auto& flight = node.mapped();
  auto record = flight.record;
  const auto now = ports_.worker.now();
  record.transfer = now - flight.began;
  record.delay = step_ - record.step;
  if (blocked_) {
    record.blocked = now - std::max(blocked_since_, flight.began);
    record.wait = std::min(flight.held, record.blocked);
    longest_wait_ = std::max(longest_wait_, record.wait);
  }
  const bool dropped = record.outcome == Outcome::dropped;
  ++(dropped ? totals_.dropped : totals_.exchanges);
  totals_.staleness_sum += record.staleness_sum;
  totals_.staleness_max = std::max(totals_.staleness_max, record.staleness_max);
  totals_.parts += record.parts;
  if (observer_) observer_->exchanged(record);
  tell(ExchangeDone{id, dropped});
}

// ---- what the half says

template <class Event>
void WorkerHost::tell(const Event& event) {
  if (observer_) observer_->consumed(event);
  const WorkerContext context{options_.self, membership_, options_.seed, step_};
  actions_.clear();
  half_->on(event, context, actions_);
  for (const auto& action : actions_.list()) {
    if (in_bucket_ && !std::holds_alternative<Reduce>(action)) {
      throw std::logic_error("strategy: BucketReady may be answered by Reduce only");
    }
    std::visit([this](const auto& a) { execute(a); }, action);
  }
}

void WorkerHost::execute(const Compute&) {
  if (computing_) throw std::logic_error("strategy: Compute while a step is under way");
  for (const Slot slot : {kParams, kGrads, kVelocity}) require_free(slot, "Compute");
  if (blocked_) {
    const auto stood = ports_.worker.now() - blocked_since_ - local_;
    const auto wait = std::min(stood, longest_wait_);
    totals_.wait += wait;
    totals_.exchange += stood - wait;
    blocked_ = false;
  }
  computing_ = true;
  ports_.worker.compute(step_);
}

void WorkerHost::execute(const ApplyLocal& action) {
  for (const auto& [id, flight] : flights_) {
    if (writes(action.call, flight.slot)) require_free(flight.slot, "ApplyLocal");
  }
  const auto began = ports_.worker.now();
  ports_.worker.run(action.call);
  const auto took = ports_.worker.now() - began;
  local_ += took;
  totals_.local += took;
}

void WorkerHost::execute(const Exchange& action) {
  if (!ports_.shards) throw std::logic_error("strategy: an exchange with servers, but it declared none");
  const ShardId all = ports_.shards->shards();
  const ShardId count = action.shards.count == 0 ? all : action.shards.count;
  if (action.shards.first + count > all) throw std::logic_error("strategy: an exchange with shards that do not exist");
  require_free(action.slot, "Exchange");
  take_off(action.id, action.slot, false, count);
  for (ShardId shard = action.shards.first; shard < action.shards.first + count; ++shard) {
    const Request request{.worker = options_.self, .exchange = action.id, .kind = action.kind, .clock = step_,
                          .version = versions_[shard], .epoch = epoch_, .lr = lr_};
    ports_.shards->send({.shard = shard, .request = request, .slot = action.slot});
  }
}

void WorkerHost::execute(const Reduce& action) {
  if (!ports_.group) throw std::logic_error("strategy: Reduce, but it declared no group");
  take_off(action.id, action.slot, true, 0);
  ports_.group->reduce(step_, action);
}

void WorkerHost::execute(const Broadcast& action) {
  if (!ports_.group) throw std::logic_error("strategy: Broadcast, but it declared no group");
  take_off(action.id, action.slot, true, 0);
  ports_.group->broadcast(step_, action);
}

void WorkerHost::execute(const SendPeer& action) {
  if (!ports_.peers) throw std::logic_error("strategy: SendPeer, but it declared no peers");
  if (!ports_.peers->send(action)) execute(Skip{});
}

void WorkerHost::execute(const SetDeadline& action) { ports_.worker.set_deadline(action.id, action.after); }

void WorkerHost::execute(const Skip&) {
  ++totals_.skipped;
  if (observer_) observer_->exchanged({.worker = options_.self, .step = step_, .outcome = Outcome::skipped});
}

void WorkerHost::take_off(ExchangeId id, Slot slot, bool collective, ShardId parts) {
  Flight flight{.slot = slot, .collective = collective, .began = ports_.worker.now(), .parts_left = parts, .held = {}, .record = {}};
  flight.record.worker = options_.self;
  flight.record.step = step_;
  flight.record.exchange = id;
  if (!flights_.emplace(id, flight).second) throw std::logic_error("strategy: exchange id " + std::to_string(id) + " is already in flight");
}

void WorkerHost::require_free(Slot slot, const char* doing) const {
  for (const auto& [id, flight] : flights_) {
    if (flight.slot == slot) {
      throw std::logic_error(std::string("strategy: ") + doing + " needs a slot that exchange " + std::to_string(id) + " has borrowed");
    }
  }
}

}  // namespace troupe::strategies
