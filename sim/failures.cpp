#include "sim/failures.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/random.hpp"
#include "sim/coordinator.hpp"
#include "sim/engine/virtual_time.hpp"
#include "sim/exchange/gradients.hpp"
#include "sim/server.hpp"
#include "sim/worker.hpp"
#include "strategies/host/member_steps.hpp"

namespace troupe::sim {

using strategies::ModelHome;
using strategies::WorkerId;

namespace {

/// Random streams distinct from those of steps, (worker << 40) | step: ranks end at 65,535.
constexpr std::uint64_t kDeaths = std::uint64_t{1} << 63;
/// Marks a death that the cluster file asks for. A random death carries the number of earlier deaths, and is void if that has changed.
constexpr std::uint64_t kAsked = ~std::uint64_t{0};
/// Limit of deaths per host without a finished lease between: more is not bad luck.
constexpr std::uint64_t kMostFruitless = 1000;

}  // namespace

Failures::Failures(World& world) : world_(world), hosts_(world.cluster.hosts.size()) {
  for (WorkerId worker = 0; worker < world.cluster.workers.size(); ++worker)
    hosts_[world.cluster.workers[worker].host].workers.push_back(worker);
}

bool Failures::can_return() const noexcept {
  return world_.cluster.failures.rejoin.count() > 0 && world_.plan.needs.takes_newcomers();
}

void Failures::begin() {
  for (const auto& loss : world_.cluster.failures.losses) {
    ++planned_;
    world_.queue.plan(loss.at, EventKind::host_dies, world_.cluster.workers[loss.worker].host, kAsked);
  }
  for (HostId host = 0; host < hosts_.size(); ++host)
    if (!hosts_[host].workers.empty()) plan_next(host);
}

void Failures::plan_next(HostId host) {
  const auto mean = world_.cluster.failures.mean_time;
  if (mean.count() == 0) return;
  core::Random random(world_.plan.seed, core::Purpose::schedule,
                      kDeaths | std::uint64_t{host} << 32 | hosts_[host].deaths);
  const double factor = -std::log(1 - random.uniform());
  const auto when = world_.queue.now() + nanoseconds(factor * static_cast<double>(mean.count()));
  if (when > kEndOfTime) return;  // it outlives every run
  ++planned_;
  world_.queue.plan(when, EventKind::host_dies, host, hosts_[host].deaths);
}

void Failures::host_dies(HostId host, std::uint64_t what) {
  --planned_;
  auto& state = hosts_[host];
  if (state.dead || (what != kAsked && what != state.deaths)) return;
  state.dead = true;
  ++state.deaths;
  require_progress();
  for (const auto worker : state.workers) {
    lost_ += world_.workers[worker]->alive() ? 1 : 0;
    world_.workers[worker]->die();
    std::erase(waiting_, worker);  // returned, but not a member yet
  }
  const auto now = world_.queue.now();
  const auto& failures = world_.cluster.failures;
  world_.queue.plan(now + failures.detection, EventKind::loss_noticed, host);
  if (can_return())
    world_.queue.plan(now + std::max(failures.rejoin, failures.detection), EventKind::host_returns, host);
}

/// Ends the run when hosts die and return so fast that no step ends.
void Failures::require_progress() {
  if (const auto done = world_.coordinator->book().done_count(); std::exchange(leases_done_, done) != done)
    fruitless_ = 0;
  if (++fruitless_ <= kMostFruitless * hosts_.size() || world_.error) return;
  world_.error = core::Error{core::Errc::peer_lost,
                             fmt::format("the run makes no progress: {} hosts died without a step finished between, "
                                         "until {:.3f} virtual seconds: raise failures.mean_time_between_s above the "
                                         "time of a step",
                                         fruitless_, core::seconds(world_.queue.now()))};
}

void Failures::loss_noticed(HostId host) {
  const auto& lost = hosts_[host].workers;
  auto& members = world_.membership;
  std::erase_if(members.workers, [&](WorkerId w) { return std::find(lost.begin(), lost.end(), w) != lost.end(); });
  ++members.epoch;
  for (const auto worker : lost) world_.coordinator->lost(worker);
  tell_membership();
  if (world_.plan.needs.group) begin_anew(lost);
  world_.coordinator->serve_all();
  if (members.size() == 0) (void)admit();  // no member is left to end the epoch that they wait for
}

void Failures::tell_membership() {
  for (const auto& server : world_.servers) server->membership_changed();
  for (const auto& worker : world_.workers)
    if (worker->alive()) worker->membership_changed();
}

/// Restarts the members that share, or may share, a collective with a lost one: with servers (separate groups) those of its group, else
/// all.
void Failures::begin_anew(const std::vector<WorkerId>& lost) {
  std::vector<WorkerId> anew;
  for (const auto worker : world_.membership.workers) {
    if (!world_.workers[worker]->alive()) continue;  // lost too, not detected yet
    const auto& group = world_.workers[worker]->group();
    const bool touched = std::any_of(lost.begin(), lost.end(),
                                     [&](WorkerId w) { return std::binary_search(group.begin(), group.end(), w); });
    if (!world_.plan.needs.servers || group.empty() || touched) anew.push_back(worker);
  }
  // Each separate group continues from its own newest step. A worker that has not met a group yet is at its first step.
  while (!anew.empty()) {
    const auto first = anew.front();
    const auto group = world_.plan.needs.servers ? world_.workers[first]->group() : anew;
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
      const bool takes = world_.workers[worker]->completed() < newest && world_.plan.needs.model != ModelHome::weighted;
      if (takes && world_.gradients) world_.gradients->memory().copy(worker, donor);
      world_.workers[worker]->begin_anew(newest, takes ? of_newest : world_.workers[worker]->host().optimizer_steps());
    }
    anew.erase(anew.begin(), end);
  }
}

/// The lost workers' collectives end with those of the restarting members, which will use the same numbers again. Where groups change
/// from round to round, so do the collectives of workers that are dead and not detected yet.
void Failures::abandon(std::span<const WorkerId> anew, const std::vector<WorkerId>& lost) {
  std::vector<WorkerId> concerned(anew.begin(), anew.end());
  concerned.insert(concerned.end(), lost.begin(), lost.end());
  for (WorkerId worker = 0; worker < world_.workers.size() && !world_.plan.needs.servers; ++worker)
    if (!world_.workers[worker]->alive()) concerned.push_back(worker);
  std::sort(concerned.begin(), concerned.end());
  world_.collectives.abandon(concerned);
}

void Failures::host_returns(HostId host) {
  auto& state = hosts_[host];
  state.dead = false;
  if (world_.plan.needs.in_step)
    waiting_.insert(waiting_.end(), state.workers.begin(), state.workers.end());
  else
    rejoin(state.workers);
  if (world_.membership.size() == 0) (void)admit();
  plan_next(host);
}

bool Failures::admit() {
  if (waiting_.empty()) return true;
  if (world_.network.in_flight() > 0) return false;
  rejoin(std::exchange(waiting_, {}));
  return true;
}

void Failures::rejoin(std::vector<WorkerId> workers) {
  if (world_.coordinator->dismissed()) return;
  auto& members = world_.membership;
  std::erase_if(workers, [&](WorkerId worker) { return world_.workers[worker]->alive(); });
  // In step, lost workers count too: if no other is left, their steps are where the run stood.
  const bool in_step = world_.plan.needs.in_step;
  std::vector<strategies::Step> stand;
  for (WorkerId other = 0; other < world_.workers.size(); ++other)
    if (in_step || std::ranges::binary_search(members.workers, other))
      stand.push_back(world_.workers[other]->completed());
  const auto first = strategies::newcomer_step(in_step, stand);
  for (const auto worker : workers) {
    members.workers.insert(std::lower_bound(members.workers.begin(), members.workers.end(), worker), worker);
    ++members.epoch;
    ++returned_;
    world_.coordinator->joined(worker);
  }
  tell_membership();
  // All are members before the first asks for leases: in step each round has a share for every member. First the centre's parameters come
  // over the network.
  const auto& cluster = world_.cluster;
  for (const auto worker : workers) {
    const auto bytes = world_.plan.floats * sizeof(float);  // a newcomer's start is never rounded
    const Duration carried{cluster.hosts[cluster.workers[worker].host].card.of(bytes)};
    world_.workers[worker]->join(first, cluster.network.latency + carried);
  }
}

}  // namespace troupe::sim
