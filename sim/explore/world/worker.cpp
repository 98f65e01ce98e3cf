#include "sim/explore/world/worker.hpp"

#include <algorithm>

#include "sim/explore/world/virtual_run.hpp"

namespace troupe::explore {
namespace {

/// Staged slots from here on are inboxes, one per sender; no strategy names them.
constexpr std::uint8_t kFirstInbox = 128;
/// Random streams distinct from those of the network.
constexpr std::uint64_t kPeerMessageLoss = std::uint64_t{1} << 62;
Slot inbox(WorkerId from) { return staged(static_cast<std::uint8_t>(kFirstInbox + from)); }

}  // namespace

Worker::Worker(VirtualRun& run, Identity self, const Strategy& strategy, const Membership& membership,
               std::vector<Version> versions)
    : run_(run),
      identity_(self),
      self_(self.rank),
      memory_(run.options().floats),
      gradient_(floats(run.options().floats)),
      peer_message_loss_(run.options().seed, core::Purpose::schedule, kPeerMessageLoss | self.address),
      host_(strategy.worker(), worker_ports(*this, strategy.needs()),
            {.self = self.rank,
             .seed = run.options().seed,
             .membership = membership,
             .buckets = std::max(run.options().buckets, 1),
             .versions = std::move(versions)},
            this) {
  const auto needs = strategy.needs();
  for (const Slot slot : {kParams, kGrads}) memory_.add(slot);
  if (core::state_slots(run.options().optimizer.kind) > 0) memory_.add(kVelocity);
  for (const Slot slot : needs.worker_slots) memory_.add(slot);
  if (needs.peers) {
    for (WorkerId peer = 0; peer < run.options().workers; ++peer) memory_.add(inbox(peer));
  }
}

void Worker::heard(const EventQueue::Action& what) {
  if (!alive_) return;
  if (const auto until = run_.stands_still(false, self_)) return run_.queue().at(*until, [this, what] { heard(what); });
  what();
}

void Worker::later(Duration delay, EventQueue::Action what) {
  run_.queue().after(delay, [this, what = std::move(what)] { heard(what); });
}

void Worker::start(core::ConstSpan params, Step first) {
  const auto mine = memory_.use(kParams);
  std::copy(params.begin(), params.end(), mine.begin());
  first_ = wants_step_ = next_step_ = first;
  later(Duration{0}, [this, first] { host_.start(first); });
}

void Worker::membership_changed(const Membership& membership) {
  heard([this, membership] {
    if (membership.epoch <= host_.membership().epoch) return;
    std::erase_if(credit_taken_,
                  [&](const auto& taken) { return !std::ranges::binary_search(membership.workers, taken.first); });
    host_.membership_changed(membership);
  });
}

void Worker::die() {
  run_.lose_weight(weight());
  run_.network().close(address());
  alive_ = false;
}

Duration Worker::now() const { return run_.queue().now(); }

// ---- steps

/// When the rule asks for Compute, the update of the last lease is finished.
void Worker::compute(Step step) {
  if (step != next_step_ && !run_.in_step()) throw Violation("steps are passed over, but leases come on demand");
  wants_step_ = step;
  if (lease_) {
    run_.lease_done();
    run_.coordinator().done(self_, *std::exchange(lease_, std::nullopt), wants_step_ - first_);
  }
  stands_ = true;
  if (dismissed_) return later(Duration{0}, [this] { stop(); });
  ask_for_lease();
  take_lease();
}

/// The lease may be granted at once.
void Worker::ask_for_lease() {
  asks_ = true;
  run_.coordinator().requested(self_);
  asks_ = false;
}

void Worker::granted(const data::Lease& lease) {
  granted_ = lease;
  if (!asks_) later(Duration{0}, [this] { take_lease(); });
}

/// Begins the wanted step; gives up the leases of skipped steps.
void Worker::take_lease() {
  while (granted_) {
    const auto lease = *std::exchange(granted_, std::nullopt);
    if (++next_step_ > wants_step_) return begin(lease);
    run_.coordinator().done(self_, lease, wants_step_ - first_);
    ask_for_lease();
  }
}

void Worker::dismiss() {
  dismissed_ = true;
  if (stands_) later(Duration{0}, [this] { stop(); });
}

void Worker::stop() {
  if (!std::exchange(stands_, false)) return;
  host_.stop();
}

void Worker::begin(const data::Lease& lease) {
  stands_ = false;
  lease_ = lease;
  const Step step = wants_step_;
  const core::ConstSpan params = memory_.use(kParams);
  params_checksum_ = checksum(params);
  for (auto* invariant : run_.options().invariants) invariant->step_begins(run_, {self_, step, lease.index, params});
  run_.quadratic().gradient(lease.index, params, gradient_.view());
  poison(memory_.use(kGrads));
  const auto takes = run_.step_time(self_, step);
  const int buckets = run_.options().buckets;
  for (int b = 0; b < buckets; ++b) {
    later(takes * (b + 1) / buckets, [this, b] { bucket_final(b); });
  }
  later(takes, [this] { step_final(); });
}

/// Backward order: bucket 0 is the end of the arena.
Range Worker::bucket_range(int bucket) const {
  if (bucket < 0) return memory_.all();
  const auto buckets = static_cast<std::size_t>(run_.options().buckets);
  return cut(memory_.size(), buckets, buckets - 1 - static_cast<std::size_t>(bucket));
}

void Worker::bucket_final(int bucket) {
  const auto range = bucket_range(bucket);
  const auto from = gradient_.view().subspan(range.offset, range.count);
  std::copy(from.begin(), from.end(), memory_.use(kGrads, range).begin());
  host_.bucket_ready(bucket);
}

void Worker::step_final() {
  if (checksum(memory_.use(kParams)) != params_checksum_) throw Violation("parameters changed during a step");
  if (run_.options().buckets == 0) {
    const auto from = gradient_.view();
    std::copy(from.begin(), from.end(), memory_.use(kGrads).begin());
  }
  host_.step_done(lease_->epoch_position, run_.options().optimizer);
}

void Worker::run(const KernelCall& call, Shards shards) {
  const auto range = shards.all() ? memory_.all() : slices(shards);
  strategies::run(run_.kernels(), call, [&](Slot slot) { return memory_.use(slot, range); });
}

Range Worker::slices(Shards cut_from) const {
  const auto first = cut(memory_.size(), shards(), cut_from.first);
  const auto last = cut(memory_.size(), shards(), cut_from.first + cut_from.count - 1);
  return {first.offset, last.offset + last.count - first.offset};
}

void Worker::set_deadline(DeadlineId id, Duration after) {
  later(after, [this, id] { host_.deadline_passed(id); });
}

// ---- exchanges with shards

ShardId Worker::shards() const { return run_.options().servers; }

void Worker::send(const ShardRequest& request) {
  const auto range = cut(memory_.size(), shards(), request.shard);
  const auto parcel =
      std::make_shared<Parcel>(memory_.lend(request.slot, range), run_.options().carriage, request.request.kind);
  away_.emplace(std::pair{request.request.exchange, request.shard}, Away{parcel, request.slot, range});
  run_.network().send({Traffic::request, address(), request.shard}, Order::fifo,
                      [this, request, parcel] { run_.server(request.shard).receive(request.request, parcel, *this); });
}

void Worker::answered(const ShardReply& reply) {
  heard([this, reply] {
    const auto node = away_.extract({reply.exchange, reply.shard});
    if (node.empty()) throw Violation("a shard answered twice");
    node.mapped().parcel->unpack();
    memory_.give_back(node.mapped().slot, node.mapped().range);
    host_.replied(reply);
  });
}

// ---- collectives

void Worker::reduce(Step step, const Reduce& reduce) {
  collective(step, reduce.id, {.group = reduce.group, .slot = reduce.slot, .bucket = reduce.bucket, .op = reduce.op});
}

void Worker::broadcast(Step step, const Broadcast& broadcast) {
  collective(step, broadcast.id,
             {.group = broadcast.group, .slot = broadcast.slot, .broadcast = true, .root = broadcast.root});
}

void Worker::collective(Step step, ExchangeId id, Collectives::Task task) {
  if (task.group.empty()) task.group = host_.membership().workers;
  const auto range = bucket_range(task.bucket);
  const auto part = memory_.lend(task.slot, range);
  run_.collectives().ask(self_, step, id, task, part,
                         [this, id, slot = task.slot, range](Duration waited, WorkerId last) {
                           heard([this, id, slot, range, waited, last] {
                             memory_.give_back(slot, range);
                             host_.reduced(id, waited, last);
                           });
                         });
}

// ---- peers

bool Worker::send(const SendPeer& message) {
  if (message.to == self_) throw Violation("a worker sends a peer message to itself");
  if (!run_.peers().may_write(self_, message.to) || credit_taken_.contains(message.to)) return false;
  auto& to = run_.worker(message.to);
  credit_taken_.emplace(message.to, &to);
  run_.peer_message_sent(message.weight);
  auto copy = std::make_shared<core::Buffer>(floats(memory_.size()));
  const auto from = memory_.use(message.slot);
  std::copy(from.begin(), from.end(), copy->view().begin());
  const bool lost = run_.next_peer_message_is_lost() || peer_message_loss_.uniform() < run_.options().peer_message_loss;
  const auto goes_missing = [this, message] {
    run_.peer_message_lost();
    run_.peer_message_arrived(message.weight);
    run_.lose_weight(message.weight);
  };
  run_.network().send(
      {Traffic::peer_message, address(), run_.worker(message.to).address()}, Order::any,
      [this, &to, message, copy, lost, goes_missing] {
        if (lost) return goes_missing(), credit_returned(to);
        run_.peer_message_arrived(message.weight);
        to.receive_peer_message(*this, message.weight, copy);
      },
      goes_missing);
  return true;
}

/// As a real worker's mailbox: no message of a lost worker, and none while another of the same rank is unread.
bool Worker::takes_message_of(const Worker& sender) const {
  const WorkerId from = sender.self_;
  return std::ranges::binary_search(host_.membership().workers, from) && &run_.worker(from) == &sender &&
         !unread_.contains(from);
}

void Worker::receive_peer_message(Worker& sender, double weight, std::shared_ptr<const core::Buffer> vector) {
  if (!alive_) return run_.lose_weight(weight);
  untold_peer_weight_ += weight;
  heard([this, &sender, weight, vector = std::move(vector)] {
    const WorkerId from = sender.self_;
    if (!takes_message_of(sender)) {
      untold_peer_weight_ -= weight;
      run_.peer_message_lost();
      run_.lose_weight(weight);
      return sender.credit_returned(*this);
    }
    unread_.emplace(from, &sender);
    std::copy(vector->view().begin(), vector->view().end(), memory_.use(inbox(from)).begin());
    host_.peer_message_arrived({.from = from, .weight = weight, .slot = inbox(from)});
  });
}

void Worker::release(Slot slot) {
  poison(memory_.use(slot));
  auto& sender = *unread_.extract(slot.index - kFirstInbox).mapped();
  run_.network().send({Traffic::credit, address(), sender.address()}, Order::any,
                      [this, &sender] { sender.credit_returned(*this); });
}

/// A newcomer owes no credit for what its predecessor has received.
void Worker::credit_returned(const Worker& receiver) {
  const auto taken = credit_taken_.find(receiver.self_);
  if (taken != credit_taken_.end() && taken->second == &receiver) credit_taken_.erase(taken);
}

// ---- observers

void Worker::consumed(const WorkerEvent& event) {
  if (const auto* message = std::get_if<PeerMessageArrived>(&event)) untold_peer_weight_ -= message->weight;
  run_.trace().consumed(self_, event, now());
  for (auto* invariant : run_.options().invariants) invariant->told(run_, self_, event);
}
void Worker::exchanged(const ExchangeRecord& record) { run_.trace().exchanged(record); }

}  // namespace troupe::explore
