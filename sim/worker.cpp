#include "sim/worker.hpp"

#include <algorithm>

#include "sim/coordinator.hpp"
#include "sim/kernel_costs.hpp"

namespace troupe::sim {

Worker::Worker(World& world, strategies::WorkerId self)
    : world_(world),
      self_(self),
      place_(world.cluster.workers[self]),
      memory_(world.cluster.kinds[place_.kind].memory) {}

Duration Worker::now() const { return std::max(world_.queue.now(), free_); }

void Worker::begin(strategies::Step first, std::vector<strategies::Version> versions) {
  ++life_;
  free_ = world_.queue.now();
  lease_open_ = wants_lease_ = false;
  hand_.clear();
  idle_buffers_ = world_.plan.prefetch + 1;
  next_step_ = first;
  host_ = std::make_unique<strategies::WorkerHost>(
      world_.plan.strategy->worker(),
      strategies::WorkerPorts{*this, world_.plan.needs.servers ? this : nullptr, nullptr, nullptr},
      strategies::WorkerHostOptions{
          .self = self_, .seed = world_.plan.seed, .membership = world_.membership, .versions = std::move(versions)});
  ask_for_leases();
  world_.queue.plan(world_.queue.now(), EventKind::worker_begins, self_, life_);
}

void Worker::started(std::uint64_t life) {
  if (life == life_) host_->start(next_step_);
}

// ---- leases and steps

/// Loaders ask for several at once.
void Worker::ask_for_leases() {
  if (idle_buffers_ * 2 < world_.plan.prefetch + 1) return;
  world_.coordinator->asked(self_, std::exchange(idle_buffers_, 0));
}

void Worker::granted(const data::Lease& lease) {
  hand_.push_back(lease);
  if (wants_lease_) begin_step();
}

/// The update that the last lease led to is finished when the half says Compute.
void Worker::finish_lease() {
  if (std::exchange(lease_open_, false)) world_.coordinator->done(self_, lease_.index, now());
}

void Worker::compute(strategies::Step step) {
  finish_lease();
  next_step_ = step;
  wants_lease_ = true;
  if (dismissed_) return world_.queue.plan(now(), EventKind::worker_stops, self_, life_);
  if (!hand_.empty()) begin_step();
}

void Worker::begin_step() {
  wants_lease_ = false;
  lease_ = hand_.front();
  hand_.pop_front();
  const auto takes = world_.steps.time(self_, next_step_);
  account_.compute += takes;
  world_.queue.plan(now() + takes, EventKind::step_ends, self_, life_);
}

void Worker::step_ended(std::uint64_t life) {
  if (life != life_) return;
  ++account_.steps;
  account_.samples += static_cast<std::uint64_t>(lease_.count);
  lease_open_ = true;
  ++idle_buffers_;
  ask_for_leases();
  const auto& plan = world_.plan;
  host_->step_done(lease_.epoch_position, nn::optimizer_step(plan.train, lease_.epoch_position, plan.leases.epochs,
                                                             static_cast<int>(plan.workers)));
}

void Worker::dismiss() {
  dismissed_ = true;
  if (wants_lease_) stop(life_);
}

void Worker::stop(std::uint64_t life) {
  if (life != life_ || !wants_lease_) return;
  wants_lease_ = false;
  host_->stop();
}

void Worker::run(const strategies::KernelCall& call, strategies::Shards shards) {
  free_ = now() + Duration{memory_.of(bytes_touched(call, world_.floats(shards)))};
}

void Worker::set_deadline(strategies::DeadlineId id, Duration after) {
  const auto index = deadlines_.take();
  deadlines_[index] = {id, life_};
  world_.queue.plan(now() + after, EventKind::worker_deadline, self_, index);
}

void Worker::deadline_passed(std::uint32_t index) {
  const auto deadline = deadlines_[index];
  deadlines_.release(index);
  if (deadline.life == life_) host_->deadline_passed(deadline.id);
}

// ---- exchanges with shards

void Worker::send(const strategies::ShardRequest& request) {
  const auto index = world_.network.take();
  auto& packet = world_.network[index];
  const auto bytes = world_.shard_bytes(request.shard);
  const auto kind = request.request.kind;
  packet.bytes = kind == strategies::Transfer::pull ? 0 : bytes;
  packet.from = place_.host;
  packet.to = world_.cluster.servers[request.shard];
  packet.line = Duration{0};
  packet.kind = PacketKind::request;
  packet.slot = request.slot;
  packet.shard = request.shard;
  packet.worker = self_;
  packet.life = life_;
  packet.request = request.request;
  account_.bytes += kind == strategies::Transfer::push_pull ? 2 * bytes : bytes;
  world_.network.send(index, now());
}

void Worker::answered(std::uint32_t index) {
  const auto& packet = world_.network[index];
  auto reply = packet.reply;
  reply.queued += packet.line;
  const bool mine = packet.life == life_;
  world_.network.release(index);
  if (mine) host_->replied(reply);
}

WorkerAccount Worker::account() const {
  auto account = account_;
  account.totals = host_->totals();
  return account;
}

}  // namespace troupe::sim
