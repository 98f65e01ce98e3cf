#include "sim/coordinator.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "sim/engine/virtual_time.hpp"
#include "sim/exchange/gradients.hpp"
#include "sim/failures.hpp"
#include "sim/worker.hpp"
#include "strategies/host/weights.hpp"

namespace troupe::sim {

using coordination::Task;
using coordination::TaskOutcome;
using strategies::WorkerId;

namespace {

/// Seconds of training are sums of rounded numbers; an event's time is exact.
constexpr double kRoundedTime_s = 1e-9;

coordination::CoordinatorOptions options_of(const World& world) {
  const auto& run = world.run;
  coordination::CoordinatorOptions options;
  options.needs = run.needs;
  // A real run of members that share collectives ends with the first loss, and is resumed; here they restart at once (failures.hpp).
  options.needs.group = false;
  options.workers = run.workers;
  options.epochs = run.leases.epochs;
  options.max_epochs = run.max_epochs;
  options.evaluations = run.evaluations;
  options.evaluates_beside = run.evaluates_beside;
  if (world.gradients) options.watch = run.watch;  // without a model there are no scores
  options.resumed = true;                          // no checkpoint at the start: it is not a part of the forecast
  options.how_to_go_on = "raise failures.mean_time_between_s";
  return options;
}

}  // namespace

Coordinator::Coordinator(World& world, data::LeaseScheduler leases, Duration pause)
    : world_(world),
      pause_(pause),
      machine_(*this, options_of(world), std::make_shared<data::LeaseScheduler>(std::move(leases))) {}

void Coordinator::begin() { machine_.begin({}); }

Duration Coordinator::now() const { return std::max(world_.queue.now(), latest_done_); }

Duration Coordinator::trained() const { return seconds(machine_.trained_s()); }

void Coordinator::grant(WorkerId worker, std::span<const data::Lease> leases, bool after_pause) {
  const double limit = world_.run.max_seconds;
  if (after_pause && limit > 0 && !std::exchange(limit_planned_, true)) {
    const auto end = now() + std::max(seconds(limit - machine_.trained_s()), Duration{0});
    if (end <= kEndOfTime) world_.queue.schedule(end, EventKind::time_is_up, 0);
  }
  for (const auto& lease : leases) world_.workers[worker]->granted(lease);
}

void Coordinator::done(WorkerId worker, std::uint64_t lease, strategies::Step steps, Duration now) {
  latest_done_ = std::max(latest_done_, now);
  machine_.progressed(worker, steps, {&lease, 1});
}

void Coordinator::time_is_up() {
  if (machine_.state() == coordination::Coordinator::State::training &&
      machine_.trained_s() + kRoundedTime_s >= world_.run.max_seconds)
    machine_.time_is_up();
}

// ---- tasks

/// An event, not a direct call: the worker that reports is inside its host's call.
void Coordinator::perform(const coordination::Order& order) {
  order_ = order;
  waits_.reset();
  limit_planned_ = false;
  world_.queue.schedule(now(), EventKind::task_begins, 0, order.number);
}

void Coordinator::task_begins(std::uint64_t order) {
  if (!machine_.awaits(order)) return;
  switch (order_.task) {
    case Task::dismiss_workers:
      waits_ = order_.task;
      for (const auto& worker : world_.workers) worker->dismiss();
      return;
    case Task::settle_workers: waits_ = order_.task; return world_.network.in_flight() == 0 ? silent() : void();
    case Task::await_peer_messages:
      waits_ = order_.task;
      return world_.peer_messages == 0 ? peer_messages_arrived() : void();
    case Task::evaluate: return evaluate();
    case Task::await_evaluation: waits_ = order_.task; return beside_ ? void() : answer();
    case Task::prepare_newcomer: return prepare_newcomer();
    case Task::begin_newcomer:
      if (world_.failures->deaths(order_.worker) == deaths_before_)  // else its loss will be noticed
        world_.failures->rejoined(order_.worker, machine_.steps().of(order_.worker));
      break;
    default: break;  // copies of the model and records take no time
  }
  answer();
}

void Coordinator::answer(TaskOutcome outcome) {
  waits_.reset();
  machine_.answered({.number = order_.number, .outcome = outcome, .newest = {}});
}

void Coordinator::task_done(std::uint64_t order) {
  if (!machine_.awaits(order)) return;
  const bool newcomer = order_.task == Task::prepare_newcomer;
  if (newcomer && world_.failures->deaths(order_.worker) != deaths_before_) return answer(TaskOutcome::refused);
  machine_.answered({.number = order, .score = score(), .newest = {}});
}

void Coordinator::silent() {
  if (waits_ == Task::settle_workers) answer();
}

void Coordinator::peer_messages_arrived() {
  if (waits_ == Task::await_peer_messages) answer();
}

void Coordinator::workers_at_rest() {
  if (dismissing()) answer();
}

/// The last one is made by Simulation, when everything has ended.
void Coordinator::evaluate() {
  const bool last = leases().epoch_done() && leases().epoch() + 1 >= world_.run.leases.epochs;
  const bool goes_on = !last && !machine_.stops();
  if (goes_on && world_.gradients && !evaluate_model()) return;
  world_.queue.schedule(world_.queue.now() + (goes_on ? pause_ : Duration{0}), EventKind::task_done, 0, order_.number);
}

coordination::Score Coordinator::score() const {
  if (!world_.gradients) return {};
  return {world_.gradients->deciding().loss, world_.gradients->deciding().accuracy()};
}

/// The score is that of the copied model; it is known after the time of an evaluation.
void Coordinator::evaluate_beside() {
  if (world_.gradients && !evaluate_model()) return;
  beside_ = score();
  world_.queue.schedule(world_.queue.now() + pause_, EventKind::evaluated, 0);
}

void Coordinator::evaluated() {
  if (!beside_) return;
  machine_.scored(*std::exchange(beside_, std::nullopt));
  if (waits_ == Task::await_evaluation) answer();
}

/// The centre's parameters come over the network.
void Coordinator::prepare_newcomer() {
  if (!world_.failures->is_back(order_.worker)) return answer(TaskOutcome::refused);
  deaths_before_ = world_.failures->deaths(order_.worker);
  const auto& cluster = world_.cluster;
  const auto bytes = world_.run.floats * sizeof(float);  // a newcomer's start is never rounded
  const Duration carried{cluster.hosts[cluster.workers[order_.worker].host].card.of(bytes)};
  world_.queue.schedule(world_.queue.now() + cluster.network.latency + carried, EventKind::task_done, 0, order_.number);
}

// ---- members

void Coordinator::membership_changed(const strategies::Membership& membership) {
  world_.membership = membership;
  world_.failures->membership_changed(std::exchange(lost_, std::nullopt));
}

void Coordinator::ended(const std::optional<core::Error>& error) {
  if (!error || world_.error) return;
  world_.error =
      core::Error{error->code, fmt::format("all workers are lost after {:.3f} virtual seconds, which ends a run: raise "
                                           "failures.mean_time_between_s",
                                           core::seconds(world_.queue.now()))};
}

bool Coordinator::evaluate_model() {
  std::vector<WorkerId> living;
  std::vector<double> weights;
  for (WorkerId worker = 0; worker < world_.workers.size(); ++worker) {
    if (!world_.workers[worker]->alive()) continue;
    living.push_back(worker);
    weights.push_back(world_.workers[worker]->weight());
  }
  if (living.empty() && world_.run.needs.model != strategies::ModelHome::center) {
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
  if (world_.run.needs.peers && world_.run.needs.model == strategies::ModelHome::weighted) {
    double shares = world_.lost_weight;
    for (const double weight : weights) shares += weight;
    for (const auto& peer_message : peer_messages) shares += peer_message.weight;
    if (std::abs(shares - 1) > strategies::kRoundedShares) {
      world_.error = core::Error{core::Errc::internal, strategies::wrong_sum_of_shares(shares, 1)};
      return false;
    }
  }
  const auto& epochs = world_.gradients->epochs();
  const auto done = leases().epoch() + (leases().epoch_done() ? 1 : 0);
  const bool closes = leases().epoch_done() && (epochs.empty() || epochs.back().epoch < done);
  return world_.good(world_.gradients->evaluate(
      living, weights, peer_messages, closes,
      {.epoch = done, .train_s = machine_.trained_s(), .train_loss = 0, .train_accuracy = 0}));
}

}  // namespace troupe::sim
