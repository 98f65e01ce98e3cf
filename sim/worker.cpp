#include "sim/worker.hpp"

#include <algorithm>
#include <utility>

#include "sim/cluster/kernel_costs.hpp"
#include "sim/coordinator.hpp"
#include "sim/engine/virtual_time.hpp"
#include "sim/exchange/gradients.hpp"
#include "sim/server.hpp"

namespace troupe::sim {

Worker::Worker(World& world, strategies::WorkerId self)
    : world_(world),
      self_(self),
      placement_(world.cluster.workers[self]),
      memory_(world.cluster.kinds[placement_.kind].memory) {}

Duration Worker::now() const { return std::max(world_.queue.now(), free_); }

// ---- lives

void Worker::begin() { begin_at(0, Duration{0}); }

void Worker::join(strategies::Step first, Duration after) {
  joins_ = true;
  begin_at(first, after);
}

void Worker::begin_at(strategies::Step first, Duration after) {
  if (world_.gradients && !world_.good(world_.gradients->begin(self_))) return;
  ++life_;
  first_step_ = wants_step_ = next_step_ = first;
  idle_buffers_ = world_.run.prefetch + 1;
  make_host(0);
  ask_for_leases();
  world_.queue.schedule(now() + after, EventKind::worker_begins, self_, life_);
}

void Worker::make_host(std::uint64_t optimizer_steps) {
  free_ = world_.queue.now();
  started_ = early_news_ = false;
  strategies::WorkerHostOptions options{
      .self = self_, .seed = world_.run.seed, .membership = world_.membership, .buckets = world_.cluster.buckets};
  options.optimizer_steps = optimizer_steps;
  for (const auto& server : world_.servers) options.versions.push_back(server->host().version());
  host_ = std::make_unique<strategies::WorkerHost>(
      world_.run.strategy->worker(), strategies::worker_ports(*this, world_.run.needs), std::move(options));
}

void Worker::begin_anew(strategies::Step first, std::uint64_t optimizer_steps) {
  const bool computing = host_->computing() && !wants_lease_;
  if (computing || lease_open_) {
    hand_.push_front(lease_);
    --next_step_;
    if (lease_open_ && next_step_ >= first) {  // its result is discarded: it will be computed again
      --account_.steps;
      account_.samples -= static_cast<std::uint64_t>(lease_.count);
    }
  }
  end_life();
  wants_step_ = first;
  make_host(optimizer_steps);
  world_.queue.schedule(now(), EventKind::worker_begins, self_, life_);
}

/// Messages for this life are dropped from now on.
void Worker::end_life() {
  if (host_->computing() && !wants_lease_) account_.compute -= step_ends_ - world_.queue.now();
  account_.totals.add(host_->totals());
  if (world_.run.needs.peers) {
    world_.lost_weight += weight();
    for (const auto& [slot, peer_message] : mailbox_.unread()) world_.lost_weight += peer_message.weight;
  }
  ++life_;
  lease_open_ = wants_lease_ = false;
  mailbox_ = {};
  group_.clear();
  host_.reset();
}

void Worker::die() {
  if (!host_) return;
  end_life();
  hand_.clear();
  if (world_.gradients) world_.gradients->memory().end(self_);
}

void Worker::membership_changed() {
  const auto& members = world_.membership.workers;
  mailbox_.forget([&](strategies::WorkerId peer) { return !std::binary_search(members.begin(), members.end(), peer); });
  if (!started_)
    early_news_ = true;  // Started comes first
  else
    host_->membership_changed(world_.membership);
}

void Worker::started(std::uint64_t life) {
  if (life != life_) return;
  if (std::exchange(joins_, false) && world_.gradients) world_.gradients->fetch_center(self_);
  started_ = true;
  host_->start(wants_step_);
  if (std::exchange(early_news_, false)) host_->membership_changed(world_.membership);
}

// ---- leases and steps

/// A loader asks for several leases at once.
void Worker::ask_for_leases() {
  if (idle_buffers_ * 2 < world_.run.prefetch + 1) return;
  world_.coordinator->requested(self_, std::exchange(idle_buffers_, 0));
}

void Worker::granted(const data::Lease& lease) {
  if (!host_) return;  // lost, not detected yet: the scheduler takes the lease back later
  hand_.push_back(lease);
  if (wants_lease_) take_lease();
}

/// When the rule asks for Compute, the update of the last lease is finished.
void Worker::compute(strategies::Step step) {
  wants_step_ = step;
  if (std::exchange(lease_open_, false)) report_done(lease_);
  wants_lease_ = true;
  if (dismissed_) return world_.queue.schedule(now(), EventKind::worker_stops, self_, life_);
  take_lease();
}

void Worker::report_done(const data::Lease& lease) {
  world_.coordinator->done(self_, lease.index, wants_step_ - first_step_, now());
}

/// Begins the wanted step if its lease is here; gives up leases of skipped steps.
void Worker::take_lease() {
  for (; next_step_ < wants_step_ && !hand_.empty(); ++next_step_) {
    report_done(hand_.front());
    hand_.pop_front();
    ++idle_buffers_;
  }
  ask_for_leases();  // may be granted at once
  if (wants_lease_ && !hand_.empty()) begin_step();
}

void Worker::begin_step() {
  wants_lease_ = false;
  lease_ = hand_.front();
  hand_.pop_front();
  ++next_step_;
  const auto takes = world_.steps.time(self_, wants_step_, now());
  step_ends_ = now() + takes;
  computed_ = false;
  account_.compute += takes;
  const auto buckets = world_.cluster.buckets;
  for (int bucket = 0; buckets > 1 && bucket < buckets; ++bucket) {
    const double rest = world_.cluster.backward * (1 - static_cast<double>(bucket + 1) / buckets);
    const Duration ready{static_cast<std::int64_t>(static_cast<double>(takes.count()) * (1 - rest))};
    world_.queue.schedule(now() + std::min(ready, takes), EventKind::bucket_ready, self_,
                          std::uint64_t{life_} << 32 | static_cast<std::uint32_t>(bucket));
  }
  world_.queue.schedule(step_ends_, EventKind::step_ends, self_, life_);
}

/// Called when the first bucket is ready, or the step is over.
void Worker::compute_gradients() {
  if (!world_.gradients || std::exchange(computed_, true)) return;
  world_.good(world_.gradients->step(self_, wants_step_, lease_));
}

void Worker::bucket_ready(std::uint64_t life_and_bucket) {
  if (life_and_bucket >> 32 != life_) return;
  compute_gradients();
  host_->bucket_ready(static_cast<int>(life_and_bucket & 0xffffffff));
}

void Worker::step_ended(std::uint64_t life) {
  if (life != life_) return;
  compute_gradients();
  ++account_.steps;
  account_.samples += static_cast<std::uint64_t>(lease_.count);
  lease_open_ = true;
  ++idle_buffers_;
  ask_for_leases();
  const auto& run = world_.run;
  host_->step_done(lease_.epoch_position, nn::optimizer_step(run.train, lease_.epoch_position, run.leases.epochs,
                                                             static_cast<int>(run.workers), lease_.lr_factor));
}

void Worker::dismiss() {
  dismissed_ = true;
  if (host_) stop(life_);
}

void Worker::stop(std::uint64_t life) {
  if (life != life_ || !wants_lease_) return;
  wants_lease_ = false;
  host_->stop();
}

void Worker::run(const strategies::KernelCall& call, strategies::Shards shards) {
  free_ = later(now(), Duration{memory_.of(bytes_touched(call, world_.floats(shards)))});
  if (world_.gradients) world_.gradients->memory().run(self_, call, shards);
}

void Worker::set_deadline(strategies::DeadlineId id, Duration after) {
  const auto index = deadlines_.take();
  deadlines_[index] = {id, life_};
  world_.queue.schedule(now() + after, EventKind::worker_deadline, self_, index);
}

void Worker::deadline_passed(std::uint32_t index) {
  const auto deadline = deadlines_[index];
  deadlines_.release(index);
  if (deadline.life == life_) host_->deadline_passed(deadline.id);
}

WorkerAccount Worker::account() const {
  auto account = account_;
  if (host_) account.totals.add(host_->totals());
  return account;
}

}  // namespace troupe::sim
