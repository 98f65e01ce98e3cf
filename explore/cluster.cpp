#include "explore/cluster.hpp"

#include <algorithm>
#include <string>

namespace troupe::explore {
namespace {

/// A run of the tests' sizes takes some ten thousand; beyond this something feeds itself.
constexpr std::uint64_t kTooManyEvents = 2'000'000;

}  // namespace

Cluster::Cluster(const Strategy& strategy, ClusterOptions options)
    : options_(std::move(options)),
      in_step_(strategy.needs().in_step),
      bowl_(options_.seed, options_.floats, options_.noise),
      network_(queue_, options_.seed, options_.delays),
      collectives_(queue_, network_, core::reference_kernels()),
      held_leases_(options_.workers) {
  for (WorkerId w = 0; w < options_.workers; ++w) membership_.workers.push_back(w);
  for (WorkerId w = 0; w < options_.workers; ++w)
    workers_.push_back(std::make_unique<Worker>(*this, w, strategy, membership_));
  if (strategy.needs().servers) {
    auto start = floats(options_.floats);
    bowl_.start(start.view());
    for (ShardId s = 0; s < options_.servers; ++s) {
      const auto range = cut(options_.floats, options_.servers, s);
      servers_.push_back(
          std::make_unique<Server>(*this, s, strategy, membership_, start.view().subspan(range.offset, range.count)));
    }
  }
  for (const auto& worker : workers_) worker->start();
  for (const auto& loss : options_.losses)
    if (!loss.in_exchange) queue_.at(loss.at, [this, loss] { lose(loss.worker); });
}

void Cluster::run() {
  while (queue_.run_next()) {
    if (queue_.performed() > kTooManyEvents) throw Violation("the company does not come to rest");
    lose_who_exchanges();
    if (options_.after_event) options_.after_event(*this);
  }
  require_rest();
  for (const auto& worker : workers_) trace_.result(worker->params());
  for (const auto& server : servers_) trace_.result(server->center());
}

void Cluster::require_rest() const {
  for (WorkerId w = 0; w < workers_.size(); ++w) {
    const auto& host = workers_[w]->host();
    if (!workers_[w]->at_rest()) {
      throw Violation("worker " + std::to_string(w) + " hangs after " + std::to_string(host.steps()) + " steps with " +
                      std::to_string(host.in_flight()) + " exchanges in flight");
    }
  }
  for (ShardId s = 0; s < servers_.size(); ++s) {
    const auto& host = servers_[s]->host();
    if (host.open() > 0)
      throw Violation("shard " + std::to_string(s) + " never answered " + std::to_string(host.open()) + " requests");
  }
  if (collectives_.open() > 0) throw Violation("a collective was never joined by all");
}

std::vector<float> Cluster::center() const {
  std::vector<float> all;
  for (const auto& server : servers_) all.insert(all.end(), server->center().begin(), server->center().end());
  return all;
}

double Cluster::weight() const noexcept {
  double sum = mail_weight_ + lost_weight_;
  for (const auto& worker : workers_) sum += worker->weight();
  return sum;
}

std::optional<std::uint64_t> Cluster::take_lease(WorkerId worker, Step step) {
  auto& held = held_leases_[worker];
  held.reset();
  if (in_step_) {
    if (step < options_.steps) held = step * options_.workers + worker;
  } else if (!returned_leases_.empty()) {
    held = returned_leases_.front();
    returned_leases_.pop_front();
  } else if (next_lease_ < options_.steps * options_.workers) {
    held = next_lease_++;
  }
  return held;
}

void Cluster::lease_done(WorkerId worker) {
  held_leases_[worker].reset();
  ++leases_done_;
}

double Cluster::epoch(std::uint64_t lease) const noexcept {
  return options_.epochs * static_cast<double>(lease) / static_cast<double>(options_.steps * options_.workers);
}

Duration Cluster::step_time(WorkerId worker, Step step) const {
  const double factor = worker < options_.slowdown.size() ? options_.slowdown[worker] : 1;
  const auto time = compute_time(options_.seed, options_.delays, worker, step);
  return Duration{static_cast<Duration::rep>(static_cast<double>(time.count()) * factor)};
}

void Cluster::leave(WorkerId worker) {
  auto& workers = membership_.workers;
  const auto place = std::find(workers.begin(), workers.end(), worker);
  if (place == workers.end()) return;
  workers.erase(place);
  ++membership_.epoch;
  for (const auto member : workers) {
    network_.send({Traffic::control, 0, member}, Order::fifo,
                  [this, member, now = membership_] { workers_[member]->membership_changed(now); });
  }
  for (ShardId s = 0; s < servers_.size(); ++s) {
    network_.send({Traffic::control, 1, s}, Order::fifo,
                  [this, s, now = membership_] { servers_[s]->membership_changed(now); });
  }
}

void Cluster::lose_who_exchanges() {
  for (const auto& loss : options_.losses) {
    const auto& worker = *workers_[loss.worker];
    if (loss.in_exchange && worker.alive() && worker.host().in_flight() > 0 && queue_.now() >= loss.at)
      lose(loss.worker);
  }
}

void Cluster::lose(WorkerId worker) {
  if (workers_[worker]->at_rest()) return;
  workers_[worker]->die();
  if (auto& held = held_leases_[worker]) returned_leases_.push_back(*held);
  held_leases_[worker].reset();
  leave(worker);
}

}  // namespace troupe::explore
