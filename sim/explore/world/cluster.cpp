#include "sim/explore/world/cluster.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "strategies/host/member_steps.hpp"

namespace troupe::explore {
namespace {

/// A run of the tests' size takes some ten thousand events; more than this is an endless loop.
constexpr std::uint64_t kTooManyEvents = 2'000'000;

/// Applies the faults of members to the options; the network applies the others.
ClusterOptions disturbed(ClusterOptions options) {
  options.slowdown.resize(options.workers, 1);
  for (const auto& fault : options.faults) {
    if (const auto* slow = std::get_if<SlowWorker>(&fault); slow && slow->worker < options.workers)
      options.slowdown[slow->worker] *= slow->factor;
    if (const auto* loss = std::get_if<Loss>(&fault)) options.losses.push_back(*loss);
  }
  std::erase_if(options.losses, [&](const Loss& loss) { return loss.worker >= options.workers; });
  return options;
}

Collectives::Watch watch(const Cluster& cluster) {
  if (cluster.options().invariants.empty()) return {};
  return [&cluster](Step step, const Collectives::Task& task, const auto& before, const auto& after) {
    for (auto* invariant : cluster.options().invariants) invariant->performed(cluster, step, task, before, after);
  };
}

}  // namespace

Cluster::Cluster(const Strategy& strategy, ClusterOptions options)
    : strategy_(strategy),
      options_(disturbed(std::move(options))),
      in_step_(strategy.needs().in_step),
      quadratic_(options_.seed, options_.floats, options_.noise),
      network_(queue_, options_.seed, options_.delays, options_.faults),
      collectives_(queue_, network_, core::reference_kernels(), watch(*this)),
      peers_(options_.workers, options_.peer_slots),
      next_worker_(options_.workers),
      losses_to_come_(options_.losses) {
  for (WorkerId w = 0; w < options_.workers; ++w) membership_.workers.push_back(w);
  for (WorkerId w = 0; w < options_.workers; ++w)
    workers_.emplace(w, std::make_unique<Worker>(*this, w, strategy, membership_));
  auto start = floats(options_.floats);
  quadratic_.start(start.view());
  if (strategy.needs().servers) {
    for (ShardId s = 0; s < options_.servers; ++s) {
      const auto range = cut(options_.floats, options_.servers, s);
      servers_.push_back(
          std::make_unique<Server>(*this, s, strategy, membership_, start.view().subspan(range.offset, range.count)));
    }
  }
  for (const auto& [id, worker] : workers_) worker->start(start.view());
  for (const auto& loss : options_.losses)
    if (!loss.in_exchange) queue_.at(loss.at, [this, loss] { lose(loss); });
}

void Cluster::run() {
  while (queue_.run_next()) {
    if (queue_.performed() > kTooManyEvents) throw Violation("the run does not come to rest");
    lose_who_exchanges();
    admit_at_boundary();
    if (options_.after_event) options_.after_event(*this);
    for (auto* invariant : options_.invariants) invariant->happened(*this);
  }
  require_rest();
  for (auto* invariant : options_.invariants) invariant->at_rest(*this);
  for (const auto& [id, worker] : workers_) trace_.result(worker->params());
  for (const auto& server : servers_) trace_.result(server->center());
}

void Cluster::require_rest() const {
  for (const auto& [w, worker] : workers_) {
    const auto& host = worker->host();
    if (!worker->at_rest()) {
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
  for (const auto& [id, worker] : workers_) sum += worker->weight();
  return sum;
}

std::optional<std::uint64_t> Cluster::take_lease(WorkerId worker, Step step) {
  std::optional<std::uint64_t> lease;
  if (in_step_) {
    if (step >= options_.steps || (expected_ > 0 && step >= frontier_)) return std::nullopt;
    frontier_ = std::max(frontier_, step + 1);
    lease = step * options_.workers + worker;
  } else if (!returned_leases_.empty()) {
    lease = returned_leases_.front();
    returned_leases_.pop_front();
  } else if (next_lease_ < options_.steps * options_.workers) {
    lease = next_lease_++;
  }
  if (lease) held_leases_[worker] = *lease;
  return lease;
}

bool Cluster::leases_may_return() const noexcept {
  if (in_step_) return expected_ > 0;
  return !losses_to_come_.empty() && !held_leases_.empty();
}

void Cluster::leases_changed() {
  for (const auto& ask_again : std::exchange(waiting_for_lease_, {})) ask_again();
}

void Cluster::lease_done(WorkerId worker) {
  held_leases_.erase(worker);
  ++leases_done_;
  leases_changed();
}

double Cluster::epoch(std::uint64_t lease) const noexcept {
  return options_.epochs * static_cast<double>(lease) / static_cast<double>(options_.steps * options_.workers);
}

Duration Cluster::step_time(WorkerId worker, Step step) const {
  const double factor = worker < options_.slowdown.size() ? options_.slowdown[worker] : 1;
  const auto time = compute_time(options_.seed, options_.delays, worker, step);
  return Duration{static_cast<Duration::rep>(static_cast<double>(time.count()) * factor)};
}

/// Adjoining pauses merge, so that all delayed events wait for the same end and keep their order.
std::optional<Duration> Cluster::stands_still(bool shard, std::uint32_t member) const {
  auto until = queue_.now();
  const auto extends = [&](const Fault& fault) {
    const auto* pause = std::get_if<Pause>(&fault);
    if (!pause || pause->shard != shard || pause->member != member) return false;
    if (until < pause->at || until >= pause->at + pause->lasts) return false;
    until = pause->at + pause->lasts;
    return true;
  };
  while (std::any_of(options_.faults.begin(), options_.faults.end(), extends)) {
  }
  return until > queue_.now() ? std::optional{until} : std::nullopt;
}

bool Cluster::next_peer_message_is_lost() {
  const auto nth = peer_messages_++;
  return std::any_of(options_.faults.begin(), options_.faults.end(), [&](const Fault& i) {
    const auto* lost = std::get_if<LostMail>(&i);
    return lost && lost->nth == nth;
  });
}

bool Cluster::is_bad(ShardId shard, std::uint64_t nth) const {
  return std::ranges::any_of(options_.faults, [&](const Fault& fault) {
    const auto* bad = std::get_if<BadPush>(&fault);
    return bad && *bad == BadPush{shard, nth};
  });
}

// ---- membership

void Cluster::leave(WorkerId worker) {
  auto& workers = membership_.workers;
  const auto place = std::find(workers.begin(), workers.end(), worker);
  if (place == workers.end()) return;
  workers.erase(place);
  announce({});
}

/// Sends the membership to all members and shards; calls `at_every_shard` when the last shard has it.
void Cluster::announce(const EventQueue::Action& at_every_shard) {
  ++membership_.epoch;
  for (const auto member : membership_.workers) {
    network_.send({Traffic::control, 0, member}, Order::fifo, [this, member, now = membership_] {
      if (has(member)) workers_[member]->membership_changed(now);
    });
  }
  const auto left = std::make_shared<std::size_t>(servers_.size());
  for (ShardId s = 0; s < servers_.size(); ++s) {
    network_.send({Traffic::control, 1, s}, Order::fifo, [this, s, left, at_every_shard, now = membership_] {
      servers_[s]->membership_changed(now);
      if (--*left == 0 && at_every_shard) at_every_shard();
    });
  }
}

void Cluster::lose_who_exchanges() {
  const auto losses = losses_to_come_;
  for (const auto& loss : losses) {
    const auto& worker = *workers_.at(loss.worker);
    if (loss.in_exchange && worker.alive() && worker.host().in_flight() > 0 && queue_.now() >= loss.at) lose(loss);
  }
}

void Cluster::lose(const Loss& loss) {
  const auto id = loss.worker;
  std::erase(losses_to_come_, loss);
  if (workers_.at(id)->at_rest()) return leases_changed();
  ++lost_;
  workers_.at(id)->die();
  if (const auto held = held_leases_.extract(id)) returned_leases_.push_back(held.mapped());
  leave(id);
  leases_changed();
  if (loss.replaced_after) queue_.after(*loss.replaced_after, [this] { replace(); });
}

/// In step no newcomer joins after the last step has begun: workers then hand in their leases and wait for the others.
void Cluster::replace() {
  if (!in_step_) return admit();
  if (frontier_ < options_.steps) ++expected_;
}

/// The shards must know the newcomer before its first message, or they would let others run ahead of it.
void Cluster::admit() {
  const WorkerId newcomer = next_worker_++;
  membership_.workers.push_back(newcomer);
  announce([this, newcomer] { enter(newcomer); });
}

/// In step a newcomer joins when all others stand before the same step, as between epochs: no round runs without it.
void Cluster::admit_at_boundary() {
  if (expected_ == 0 || admitting_) return;
  for (const auto& [id, worker] : workers_)
    if (!worker->at_rest() && !worker->stands()) return;
  admitting_ = true;
  admit();
}

/// A newcomer begins with x = c. In step all others are idle then, so their reported steps are complete.
void Cluster::enter(WorkerId newcomer) {
  std::vector<Version> versions;
  for (const auto& server : servers_) versions.push_back(server->host().version());
  auto worker = std::make_unique<Worker>(*this, newcomer, strategy_, membership_, versions);
  std::vector<Step> stand;
  for (const auto& [id, member] : workers_)
    if (std::ranges::binary_search(membership_.workers, id)) stand.push_back(member->reported_step());
  // A real run without members is over; here the newcomer continues at the step that they had reached.
  const Step first = stand.empty() && in_step_ ? frontier_ : newcomer_step(in_step_, stand);
  worker->start(center(), first);
  workers_.emplace(newcomer, std::move(worker));
  for (auto* invariant : options_.invariants) invariant->entered(*this, newcomer, first, versions);
  if (!std::exchange(admitting_, false)) return;
  --expected_;
  leases_changed();
}

}  // namespace troupe::explore
