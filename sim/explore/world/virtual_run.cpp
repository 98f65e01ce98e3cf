#include "sim/explore/world/virtual_run.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::explore {
namespace {

/// A run of the tests' size takes some ten thousand events; more than this is an endless loop.
constexpr std::uint64_t kTooManyEvents = 2'000'000;

/// Applies the faults of members to the options; the network applies the others.
VirtualRunOptions disturbed(VirtualRunOptions options) {
  options.slowdown.resize(options.workers, 1);
  for (const auto& fault : options.faults) {
    if (const auto* slow = std::get_if<SlowWorker>(&fault); slow && slow->worker < options.workers)
      options.slowdown[slow->worker] *= slow->factor;
    if (const auto* loss = std::get_if<Loss>(&fault)) options.losses.push_back(*loss);
  }
  std::erase_if(options.losses, [&](const Loss& loss) { return loss.worker >= options.workers; });
  return options;
}

Collectives::Watch watch(const VirtualRun& run) {
  if (run.options().invariants.empty()) return {};
  return [&run](Step step, const Collectives::Task& task, const auto& before, const auto& after) {
    for (auto* invariant : run.options().invariants) invariant->performed(run, step, task, before, after);
  };
}

}  // namespace

VirtualRun::VirtualRun(const Strategy& strategy, VirtualRunOptions options)
    : strategy_(strategy),
      options_(disturbed(std::move(options))),
      in_step_(strategy.needs().in_step),
      quadratic_(options_.seed, options_.floats, options_.noise),
      network_(queue_, options_.seed, options_.delays, options_.faults),
      collectives_(queue_, network_, core::reference_kernels(), watch(*this)),
      peers_(options_.workers, options_.peer_slots),
      coordinator_(*this, strategy.needs()),
      lives_(options_.workers, 0),
      next_address_(options_.workers),
      losses_to_come_(options_.losses) {
  for (WorkerId w = 0; w < options_.workers; ++w) membership_.workers.push_back(w);
  for (WorkerId w = 0; w < options_.workers; ++w)
    workers_.push_back(std::make_unique<Worker>(*this, Identity{.rank = w, .address = w}, strategy, membership_));
  auto start = floats(options_.floats);
  quadratic_.start(start.view());
  if (strategy.needs().servers) {
    for (ShardId s = 0; s < options_.servers; ++s) {
      const auto range = cut(options_.floats, options_.servers, s);
      servers_.push_back(
          std::make_unique<Server>(*this, s, strategy, membership_, start.view().subspan(range.offset, range.count)));
    }
  }
  coordinator_.begin();
  for (const auto& worker : workers_) worker->start(start.view());
  for (const auto& loss : options_.losses)
    if (!loss.in_exchange) queue_.at(loss.at, [this, loss] { lose(loss); });
}

void VirtualRun::execute() {
  while (queue_.run_next()) {
    if (queue_.performed() > kTooManyEvents) throw Violation("the run does not come to rest");
    lose_who_exchanges();
    coordinator_.answer_if_done();
    if (options_.after_event) options_.after_event(*this);
    for (auto* invariant : options_.invariants) invariant->happened(*this);
  }
  require_rest();
  for (auto* invariant : options_.invariants) invariant->at_rest(*this);
  for (const auto& worker : workers_) trace_.result(worker->params());
  for (const auto& server : servers_) trace_.result(server->center());
}

void VirtualRun::require_rest() const {
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
  if (!coordinator_.ended()) throw Violation("all are at rest, and the run has not ended");
}

std::vector<float> VirtualRun::center() const {
  std::vector<float> all;
  for (const auto& server : servers_) all.insert(all.end(), server->center().begin(), server->center().end());
  return all;
}

double VirtualRun::weight() const noexcept {
  double sum = peer_message_weight_ + lost_weight_;
  for (const auto& worker : workers_) sum += worker->weight();
  return sum;
}

Duration VirtualRun::step_time(WorkerId worker, Step step) const {
  const double factor = worker < options_.slowdown.size() ? options_.slowdown[worker] : 1;
  const auto time = compute_time(options_.seed, options_.delays, worker, step);
  return Duration{static_cast<Duration::rep>(static_cast<double>(time.count()) * factor)};
}

/// Adjoining pauses merge, so that all delayed events wait for the same end and keep their order.
std::optional<Duration> VirtualRun::stands_still(bool shard, std::uint32_t member) const {
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

bool VirtualRun::next_peer_message_is_lost() {
  const auto nth = peer_messages_++;
  return std::any_of(options_.faults.begin(), options_.faults.end(), [&](const Fault& i) {
    const auto* lost = std::get_if<LostPeerMessage>(&i);
    return lost && lost->nth == nth;
  });
}

bool VirtualRun::is_bad(ShardId shard, std::uint64_t nth) const {
  return std::ranges::any_of(options_.faults, [&](const Fault& fault) {
    const auto* bad = std::get_if<BadPush>(&fault);
    return bad && *bad == BadPush{shard, nth};
  });
}

// ---- membership

void VirtualRun::announce(const Membership& membership) {
  membership_ = membership;
  for (const auto member : membership_.workers) {
    auto& worker = *workers_[member];
    network_.send({Traffic::control, 0, worker.address()}, Order::fifo,
                  [&worker, membership] { worker.membership_changed(membership); });
  }
  news_to_shards_ += servers_.size();
  for (ShardId s = 0; s < servers_.size(); ++s) {
    network_.send({Traffic::control, 1, s}, Order::fifo, [this, s, membership, lives = lives_] {
      --news_to_shards_;
      servers_[s]->membership_changed(membership, lives);
    });
  }
}

void VirtualRun::dismiss() {
  for (const auto& worker : workers_) worker->dismiss();
}

bool VirtualRun::all_at_rest() const {
  return std::ranges::all_of(workers_, [](const auto& worker) { return worker->at_rest(); });
}

bool VirtualRun::all_stand() const {
  return std::ranges::all_of(workers_, [](const auto& worker) { return !worker->alive() || worker->stands(); });
}

void VirtualRun::lose_who_exchanges() {
  const auto losses = losses_to_come_;
  for (const auto& loss : losses) {
    const auto& worker = *workers_[loss.worker];
    if (loss.in_exchange && worker.alive() && worker.host().in_flight() > 0 && queue_.now() >= loss.at) lose(loss);
  }
}

void VirtualRun::lose(const Loss& loss) {
  std::erase(losses_to_come_, loss);
  auto& worker = *workers_[loss.worker];
  if (worker.at_rest()) return;
  ++lost_;
  ++lives_[loss.worker];
  worker.die();
  coordinator_.lost(loss.worker);
  if (loss.replaced_after)
    queue_.after(*loss.replaced_after, [this, rank = loss.worker] { coordinator_.arrived(rank); });
}

/// A newcomer begins with x = c.
void VirtualRun::enter(WorkerId newcomer, Step first) {
  std::vector<Version> versions;
  for (const auto& server : servers_) versions.push_back(server->host().version());
  const Identity identity{.rank = newcomer, .life = lives_[newcomer], .address = next_address_++};
  auto worker = std::make_unique<Worker>(*this, identity, strategy_, membership_, versions);
  worker->start(center(), first);
  former_.push_back(std::exchange(workers_[newcomer], std::move(worker)));
  for (auto* invariant : options_.invariants) invariant->entered(*this, newcomer, first, versions);
}

}  // namespace troupe::explore
