#include "sim/coordinator.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "sim/engine/virtual_time.hpp"
#include "sim/exchange/gradients.hpp"
#include "sim/failures.hpp"
#include "sim/worker.hpp"

namespace troupe::sim {

using strategies::WorkerId;

namespace {

/// N shares of 1/N sum to 1 with an error of at most N · 2⁻⁵².
constexpr double kRoundedShares = 1e-10;

}  // namespace

Coordinator::Coordinator(World& world, data::LeaseScheduler book, Duration pause)
    : world_(world), book_(std::move(book)), pause_(pause), wants_(world.plan.workers, 0) {}

void Coordinator::train() {
  training_ = true;
  since_ = world_.queue.now();
  if (const double limit = world_.plan.max_seconds; limit > 0) {
    const auto end = since_ + std::max(seconds(limit) - trained_, Duration{0});
    if (end <= kEndOfTime) world_.queue.plan(end, EventKind::time_is_up, 0);
  }
  serve_all();
}

void Coordinator::serve_all() {
  if (!training_) return;
  for (WorkerId worker = 0; worker < wants_.size(); ++worker) serve(worker);
  plan_quiet(world_.queue.now());
}

void Coordinator::lost(WorkerId worker) {
  wants_[worker] = 0;
  book_.lost(worker);
}

void Coordinator::joined(WorkerId worker) { book_.joined(worker); }

void Coordinator::asked(WorkerId worker, std::int64_t leases) {
  wants_[worker] += leases;
  if (training_) serve(worker);
}

void Coordinator::serve(WorkerId worker) {
  while (wants_[worker] > 0) {
    const auto lease = book_.grant(worker);
    if (!lease) return;
    --wants_[worker];
    world_.workers[worker]->granted(*lease);
  }
}

void Coordinator::done(WorkerId worker, std::uint64_t lease, Duration now) {
  book_.done(worker, lease);
  if (training_) plan_quiet(now);
}

/// An event, not a direct call: the worker that reports is inside its host's call.
void Coordinator::plan_quiet(Duration now) {
  if (quiet_planned_ || !book_.quiet()) return;
  quiet_planned_ = true;
  world_.queue.plan(now, EventKind::all_quiet, 0);
}

void Coordinator::quiet() {
  quiet_planned_ = false;
  if (!training_ || !book_.quiet()) return;
  training_ = false;
  trained_ += world_.queue.now() - since_;
  awaits_peer_messages_ = world_.peer_messages > 0;
  if (!awaits_peer_messages_) end_quiet();
}

void Coordinator::peer_messages_arrived() {
  if (std::exchange(awaits_peer_messages_, false)) end_quiet();
}

void Coordinator::end_quiet() {
  if (!stop_ && !book_.finished() && world_.gradients) {
    if (!look_at_model()) return;
    const double target = world_.plan.target_accuracy;
    stop_ = target > 0 && world_.gradients->score().accuracy() >= target;
  }
  if (stop_ || book_.finished()) {
    dismissed_ = true;  // evaluated once more when all workers have handed in their leases
    for (const auto& worker : world_.workers) worker->dismiss();
    return;
  }
  book_.next_epoch();
  begin_epoch();
}

void Coordinator::begin_epoch() {
  awaits_silence_ = !world_.failures->admit();
  if (!awaits_silence_) world_.queue.plan(world_.queue.now() + pause_, EventKind::training_begins, 0);
}

void Coordinator::silent() {
  if (awaits_silence_)
    begin_epoch();
  else if (world_.membership.size() == 0)
    (void)world_.failures->admit();
}

bool Coordinator::look_at_model() {
  std::vector<WorkerId> living;
  std::vector<double> weights;
  for (WorkerId worker = 0; worker < world_.workers.size(); ++worker) {
    if (!world_.workers[worker]->alive()) continue;
    living.push_back(worker);
    weights.push_back(world_.workers[worker]->weight());
  }
  if (living.empty() && world_.plan.needs.model != strategies::ModelHome::center) {
    // They died after the epoch's last step, and no loss is detected yet.
    world_.error =
        core::Error{core::Errc::peer_lost,
                    fmt::format("all workers are lost after {:.3f} virtual seconds, and the model with them: raise "
                                "failures.mean_time_between_s",
                                core::seconds(world_.queue.now()))};
    return false;
  }
  std::vector<UnreadMessage> peer_messages;
  for (const auto worker : living) world_.workers[worker]->add_unread(peer_messages);
  if (world_.plan.needs.peers && world_.plan.needs.model == strategies::ModelHome::weighted) {
    double shares = world_.lost_weight;
    for (const double weight : weights) shares += weight;
    for (const auto& peer_message : peer_messages) shares += peer_message.weight;
    if (std::abs(shares - 1) > kRoundedShares) {
      world_.error =
          core::Error{core::Errc::internal,
                      fmt::format("the workers' shares of the model, and those of the peer messages between them "
                                  "and of what was lost, add up to {:.17g}",
                                  shares)};
      return false;
    }
  }
  const auto& epochs = world_.gradients->epochs();
  const auto done = book_.epoch() + (book_.epoch_done() ? 1 : 0);
  const bool closes = book_.epoch_done() && (epochs.empty() || epochs.back().epoch < done);
  return world_.good(world_.gradients->evaluate(
      living, weights, peer_messages, closes,
      {.epoch = done, .train_s = core::seconds(trained_), .train_loss = 0, .train_accuracy = 0}));
}

void Coordinator::time_is_up() {
  if (!training_ || trained_ + world_.queue.now() - since_ < seconds(world_.plan.max_seconds)) return;
  stop_ = true;
  book_.pause();
  plan_quiet(world_.queue.now());
}

}  // namespace troupe::sim
