#include "sim/simulation.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "sim/coordinator.hpp"
#include "sim/engine/virtual_time.hpp"
#include "sim/exchange/gradients.hpp"
#include "sim/failures.hpp"
#include "sim/server.hpp"

namespace troupe::sim {

using strategies::ShardId;
using strategies::WorkerId;

Simulation::Simulation(const SimulatedRun& run, const Cluster& cluster, data::LeaseScheduler leases,
                       SimulationOptions options)
    : world_(run, cluster), progress_(std::move(options.progress)), watch_(std::move(options.watch)) {
  world_.gradients = options.gradients;
  world_.coordinator = std::make_unique<Coordinator>(world_, std::move(leases), options.pause);
  world_.queue.foresee_with(
      [](void* network, const Event& event) {
        const bool packet = event.kind == EventKind::packet_leaves || event.kind == EventKind::packet_head ||
                            event.kind == EventKind::packet_here;
        if (packet) static_cast<const Network*>(network)->fetch(event.who);
      },
      &world_.network);
  world_.membership.workers.resize(run.workers);
  std::iota(world_.membership.workers.begin(), world_.membership.workers.end(), 0);
  for (ShardId shard = 0; shard < run.servers; ++shard)
    world_.servers.push_back(std::make_unique<Server>(world_, shard));
  for (WorkerId worker = 0; worker < run.workers; ++worker)
    world_.workers.push_back(std::make_unique<Worker>(world_, worker));
  world_.failures = std::make_unique<Failures>(world_);
}

core::Result<SimulationResult> Simulation::run() try {
  for (const auto& worker : world_.workers) worker->begin();
  world_.coordinator->begin();
  world_.failures->begin();
  Event event;
  while (!world_.error) {
    if (world_.coordinator->dismissing() && at_rest()) world_.coordinator->workers_at_rest();
    if (world_.coordinator->ended()) break;
    if (world_.queue.scheduled() == world_.failures->scheduled()) return tl::unexpected(stuck());
    if (!world_.queue.next(event)) break;
    happen(event);
    tell();
    be_watched();
  }
  const bool model_left = world_.run.needs.model == strategies::ModelHome::center || !all_lost();
  if (!world_.error && !model_left) return tl::unexpected(stuck());
  if (!world_.error && world_.gradients) world_.coordinator->evaluate_model();
  if (world_.error) return tl::unexpected(*world_.error);
  return result();
} catch (const OutOfTime& passed) {
  return core::fail(
      core::Errc::config,
      fmt::format("{}, after {:.3f} virtual seconds: a time or speed of the cluster file, or the length of the "
                  "run, is out of all proportion",
                  passed.what(), core::seconds(world_.queue.now())));
}

/// By epochs done: a limit of time may end the run earlier.
void Simulation::tell() const {
  constexpr std::uint64_t kReportEvery = 1024;  // events
  if (!progress_ || world_.queue.happened() % kReportEvery != 0) return;
  progress_(world_.coordinator->leases().epoch_position() / static_cast<double>(world_.run.leases.epochs));
}

void Simulation::be_watched() {
  constexpr std::uint64_t kWatchEvery = 64;  // events
  if (!watch_ || world_.queue.happened() % kWatchEvery != 0) return;
  SimulatedMoment now{.at = world_.queue.now(), .epochs = world_.coordinator->leases().epoch_position(), .steps = 0};
  for (const auto& worker : world_.workers) now.steps += worker->host().steps();
  if (!watch_(now)) world_.error = {core::Errc::interrupted, "the simulation was stopped"};
}

bool Simulation::all_lost() const {
  return std::none_of(world_.workers.begin(), world_.workers.end(), [](const auto& worker) { return worker->alive(); });
}

void Simulation::happen(const Event& event) {
  switch (event.kind) {
    case EventKind::worker_begins: return world_.workers[event.who]->started(event.what);
    case EventKind::step_ends: return world_.workers[event.who]->step_ended(event.what);
    case EventKind::worker_stops: return world_.workers[event.who]->stop(event.what);
    case EventKind::worker_deadline:
      return world_.workers[event.who]->deadline_passed(static_cast<std::uint32_t>(event.what));
    case EventKind::server_deadline: return world_.servers[event.who]->deadline_passed(event.what);
    case EventKind::packet_leaves: return world_.network.leave(event.who);
    case EventKind::packet_head:
      if (world_.network.head(event.who)) deliver(event.who);
      return;
    case EventKind::packet_here: return deliver(event.who);
    case EventKind::task_begins: return world_.coordinator->task_begins(event.what);
    case EventKind::task_done: return world_.coordinator->task_done(event.what);
    case EventKind::evaluated: return world_.coordinator->evaluated();
    case EventKind::time_is_up: return world_.coordinator->time_is_up();
    case EventKind::bucket_ready: return world_.workers[event.who]->bucket_ready(event.what);
    case EventKind::collective_done: return end_collective(event.who, event.what);
    case EventKind::host_dies: return world_.failures->host_dies(event.who, event.what);
    case EventKind::loss_noticed: return world_.failures->loss_noticed(event.who);
    case EventKind::host_returns: return world_.failures->host_returns(event.who);
    case EventKind::action: break;
  }
}

void Simulation::deliver(std::uint32_t index) {
  const auto& packet = world_.network[index];
  switch (packet.kind) {
    case PacketKind::request: return world_.servers[packet.shard]->receive(index);
    case PacketKind::reply: return world_.workers[packet.worker]->answered(index);
    case PacketKind::peer_message: return world_.workers[packet.worker]->peer_message(index);
    case PacketKind::credit: return world_.workers[packet.worker]->credit(index);
  }
}

void Simulation::end_collective(std::uint32_t index, std::uint64_t generation) {
  const auto* collective = world_.collectives.done(index, generation);
  if (!collective) return;
  if (world_.gradients) world_.gradients->memory().perform(*collective);
  for (const auto& part : collective->parts)
    world_.workers[part.worker]->reduced(*collective, collective->complete - part.asked);
  world_.collectives.close(index);
}

/// All workers have stopped, and no packet is in flight.
bool Simulation::at_rest() const {
  return world_.network.in_flight() == 0 && std::all_of(world_.workers.begin(), world_.workers.end(),
                                                        [](const auto& worker) { return worker->at_rest(); });
}

core::Error Simulation::stuck() const {
  if (all_lost())
    return {core::Errc::peer_lost,
            fmt::format("all workers are lost after {:.3f} virtual seconds, and none comes back: raise "
                        "failures.mean_time_between_s, or set failures.rejoin_s for a strategy that lets them",
                        core::seconds(world_.queue.now()))};
  for (WorkerId worker = 0; worker < world_.workers.size(); ++worker) {
    if (world_.workers[worker]->at_rest()) continue;
    const auto& host = world_.workers[worker]->host();
    return {core::Errc::internal, fmt::format("deadlock: worker {} is blocked after {} steps, with {} "
                                              "exchanges in flight",
                                              worker, host.steps(), host.in_flight())};
  }
  return {core::Errc::internal, "deadlock: no event is left"};
}

SimulationResult Simulation::result() const {
  SimulationResult result;
  if (const auto* gradients = world_.gradients)
    result.learned = {gradients->train_loss(), gradients->score(), gradients->model_hash(), gradients->epochs()};
  for (const auto& worker : world_.workers) result.workers.push_back(worker->account());
  for (const auto& worker : world_.workers)
    if (worker->alive()) result.weight += worker->weight();
  result.epochs = world_.coordinator->leases().epoch() + (world_.coordinator->leases().epoch_done() ? 1 : 0);
  result.stopped_by = name(world_.coordinator->early_stop());
  result.trained = world_.coordinator->trained();
  result.wall = world_.queue.now();
  result.events = world_.queue.happened();
  result.network_bytes = world_.network.bytes();
  result.lost = world_.failures->lost();
  result.returned = world_.failures->returned();
  result.lost_weight = world_.lost_weight;
  const auto& batches = world_.run.leases.batches;
  for (WorkerId worker = 0; worker < world_.workers.size(); ++worker) {
    const double alone = static_cast<double>(batches[worker]) / world_.steps.expected_s(worker);
    if (worker == 0) result.alone_images_per_s = alone;
    result.ideal_images_per_s += alone;
  }
  const auto share = [&](Duration busy) {
    return result.trained.count() > 0 ? static_cast<double>(busy.count()) / static_cast<double>(result.trained.count())
                                      : 0;
  };
  const auto& cards = world_.network.use();
  const auto& collectives = world_.collectives.card_time();
  for (std::size_t host = 0; host < cards.size(); ++host)
    result.busiest_card =
        std::max(result.busiest_card, share(std::max(cards[host].in, cards[host].out) + collectives[host]));
  for (const auto& server : world_.servers)
    result.busiest_server = std::max(result.busiest_server, share(server->busy()));
  return result;
}

}  // namespace troupe::sim
