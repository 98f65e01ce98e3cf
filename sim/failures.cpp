#include "sim/failures.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/random.hpp"
#include "sim/coordinator.hpp"
#include "sim/engine/virtual_time.hpp"
#include "sim/exchange/gradients.hpp"
#include "sim/server.hpp"
#include "sim/worker.hpp"

namespace troupe::sim {

using strategies::ModelHome;
using strategies::WorkerId;

namespace {

/// Random streams distinct from those of steps, (worker << 40) | step: ranks end at 65,535.
constexpr std::uint64_t kDeaths = std::uint64_t{1} << 63;
/// Marks a death that the cluster file asks for. A random death carries the number of earlier deaths, and is void if that has changed.
constexpr std::uint64_t kAsked = ~std::uint64_t{0};

}  // namespace

Failures::Failures(World& world) : world_(world), hosts_(world.cluster.hosts.size()) {
  for (WorkerId worker = 0; worker < world.cluster.workers.size(); ++worker)
    hosts_[world.cluster.workers[worker].host].workers.push_back(worker);
}

bool Failures::can_return() const noexcept {
  return world_.cluster.failures.rejoin.count() > 0 && world_.run.needs.takes_newcomers();
}

void Failures::begin() {
  for (const auto& loss : world_.cluster.failures.losses) {
    ++scheduled_;
    world_.queue.schedule(loss.at, EventKind::host_dies, world_.cluster.workers[loss.worker].host, kAsked);
  }
  for (HostId host = 0; host < hosts_.size(); ++host)
    if (!hosts_[host].workers.empty()) schedule_next(host);
}

void Failures::schedule_next(HostId host) {
  const auto mean = world_.cluster.failures.mean_time;
  if (mean.count() == 0) return;
  core::Random random(world_.run.seed, core::Purpose::schedule,
                      kDeaths | std::uint64_t{host} << 32 | hosts_[host].deaths);
  const double factor = -std::log(1 - random.uniform());
  const auto when = world_.queue.now() + nanoseconds(factor * static_cast<double>(mean.count()));
  if (when > kEndOfTime) return;  // it outlives every run
  ++scheduled_;
  world_.queue.schedule(when, EventKind::host_dies, host, hosts_[host].deaths);
}

void Failures::host_dies(HostId host, std::uint64_t what) {
  --scheduled_;
  auto& state = hosts_[host];
  if (state.dead || (what != kAsked && what != state.deaths)) return;
  state.dead = true;
  ++state.deaths;
  for (const auto worker : state.workers) {
    lost_ += world_.workers[worker]->alive() ? 1 : 0;
    world_.workers[worker]->die();
  }
  const auto now = world_.queue.now();
  const auto& failures = world_.cluster.failures;
  world_.queue.schedule(now + failures.detection, EventKind::loss_noticed, host);
  if (can_return())
    world_.queue.schedule(now + std::max(failures.rejoin, failures.detection), EventKind::host_returns, host);
}

void Failures::loss_noticed(HostId host) {
  for (const auto worker : hosts_[host].workers) world_.coordinator->lost(worker);
}

void Failures::membership_changed(std::optional<WorkerId> lost) {
  for (const auto& server : world_.servers) server->membership_changed();
  for (const auto& worker : world_.workers)
    if (worker->alive()) worker->membership_changed();
  if (lost && world_.run.needs.group) begin_anew(*lost);
}

/// Restarts the members that share, or may share, a collective with a lost one: with servers (separate groups) those of its group, else
/// all.
void Failures::begin_anew(WorkerId lost) {
  std::vector<WorkerId> anew;
  for (const auto worker : world_.membership.workers) {
    if (!world_.workers[worker]->alive()) continue;  // lost too, not detected yet
    const auto& group = world_.workers[worker]->group();
    const bool touched = std::binary_search(group.begin(), group.end(), lost);
    if (!world_.run.needs.servers || group.empty() || touched) anew.push_back(worker);
  }
  // Each separate group continues from its own newest step. A worker that has not met a group yet is at its first step.
  while (!anew.empty()) {
    const auto first = anew.front();
    const auto group = world_.run.needs.servers ? world_.workers[first]->group() : anew;
    const auto end = std::stable_partition(anew.begin(), anew.end(), [&](WorkerId w) {
      return w == first || std::binary_search(group.begin(), group.end(), w);
    });
    const std::span<const WorkerId> members(anew.begin(), end);
    const auto donor = *std::max_element(members.begin(), members.end(), [&](WorkerId a, WorkerId b) {
      return world_.workers[a]->completed() < world_.workers[b]->completed();
    });
    const auto newest = world_.workers[donor]->completed();
    const auto of_newest = world_.workers[donor]->host().optimizer_steps();
    abandon(members, lost);
    for (const auto worker : members) {
      const bool takes = world_.workers[worker]->completed() < newest && world_.run.needs.model != ModelHome::weighted;
      if (takes && world_.gradients) world_.gradients->memory().copy(worker, donor);
      world_.workers[worker]->begin_anew(newest, takes ? of_newest : world_.workers[worker]->host().optimizer_steps());
    }
    anew.erase(anew.begin(), end);
  }
}

/// The lost worker's collectives end with those of the restarting members, which will use the same numbers again. Where groups change
/// from round to round, so do the collectives of workers that are dead and not detected yet.
void Failures::abandon(std::span<const WorkerId> anew, WorkerId lost) {
  std::vector<WorkerId> concerned(anew.begin(), anew.end());
  concerned.push_back(lost);
  for (WorkerId worker = 0; worker < world_.workers.size() && !world_.run.needs.servers; ++worker)
    if (!world_.workers[worker]->alive()) concerned.push_back(worker);
  std::sort(concerned.begin(), concerned.end());
  world_.collectives.abandon(concerned);
}

void Failures::host_returns(HostId host) {
  auto& state = hosts_[host];
  state.dead = false;
  schedule_next(host);
  for (const auto worker : state.workers) world_.coordinator->arrived(worker);
}

bool Failures::is_back(WorkerId worker) const { return !hosts_[world_.cluster.workers[worker].host].dead; }

std::uint64_t Failures::deaths(WorkerId worker) const { return hosts_[world_.cluster.workers[worker].host].deaths; }

void Failures::rejoined(WorkerId worker, strategies::Step first) {
  ++returned_;
  world_.workers[worker]->join(first, Duration{0});
}

}  // namespace troupe::sim
