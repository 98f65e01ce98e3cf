#include "sim/replay/result/replay_totals.hpp"

#include <algorithm>
#include <utility>

#include "experiment/progress_aggregator.hpp"

namespace troupe::replay {
namespace {

void add_to(experiment::EpochTotals& sum, const experiment::EpochTotals& more) {
  sum.loss += more.loss;
  sum.samples += more.samples;
}

std::pair<std::uint32_t, std::int64_t> end_of(const data::Lease& lease) {
  return {lease.epoch, lease.first + lease.count};
}

}  // namespace

void add(EpochSums& sums, const EpochSums& more) {
  for (const auto& [epoch, totals] : more) add_to(sums[epoch], totals);
}

LeaseSpan span_of(const std::vector<std::vector<data::Lease>>& leases) {
  LeaseSpan span;
  for (const auto& of_worker : leases)
    for (const auto& lease : of_worker) {
      if (!span.first || lease.index < span.first->index) span.first = lease;
      if (!span.last || end_of(lease) > end_of(*span.last)) span.last = lease;
    }
  return span;
}

void ReplayTotals::begin_session(const experiment::RunTotals& start, const LeaseSpan& leases) {
  experiment::ProgressAggregator earlier(static_cast<std::uint32_t>(workers_.size()), 0, before_);
  for (const auto& worker : workers_) earlier.add(worker);
  auto life = earlier.life(before_.train_s);
  before_ = start;
  before_.session = std::move(life);
  before_.session.train_s = 0;
  epochs_.clear();
  began_within_epoch_ = leases.first && leases.first->epoch_position > leases.first->epoch;
  if (leases.last) last_.reset();  // it may have been undone
}

void ReplayTotals::add(std::vector<experiment::WorkerProgress> workers, const EpochSums& epochs,
                       const LeaseSpan& leases, bool goes_on) {
  if (goes_on && !workers_.empty())
    for (std::size_t w = 0; w < workers.size(); ++w) experiment::add(workers[w], workers_[w]);
  workers_ = std::move(workers);
  replay::add(epochs_, epochs);
  if (leases.last && (!last_ || end_of(*leases.last) > end_of(*last_))) last_ = leases.last;
}

std::uint64_t ReplayTotals::steps() const {
  auto steps = before_.steps;
  for (const auto& worker : workers_) steps += worker.steps;
  return steps;
}

/// As the coordinator closes epochs: the next one's first lease ends an epoch.
experiment::EpochTotals ReplayTotals::last_epoch() const {
  if (epochs_.empty()) return before_.epoch;
  auto last = epochs_.rbegin()->second;
  if (began_within_epoch_ && epochs_.size() == 1) add_to(last, before_.epoch);
  return last;
}

/// The last lease's epoch is done if no further batch of it could be granted.
std::uint32_t ReplayTotals::epochs(const experiment::RunSpec& spec, std::uint64_t samples, bool complete) const {
  const auto size = static_cast<std::int64_t>(spec.source.train->size());
  if (!last_) return static_cast<std::uint32_t>(samples / static_cast<std::uint64_t>(size));
  const auto& data = spec.settings->data;
  std::int64_t next = 1;
  if (data.drop_tail) {
    next = std::ranges::max(data.batch);
    if (spec.needs.in_step) next *= spec.workers;
  }
  const bool done = complete && end_of(*last_).second + next > size;
  return last_->epoch + (done ? 1 : 0);
}

void ReplayTotals::fill(experiment::Summary& summary, const experiment::RunSpec& spec, bool complete) const {
  auto before = before_;
  before.epoch = last_epoch();
  experiment::ProgressAggregator aggregator(spec.workers, spec.servers, std::move(before));
  for (const auto& worker : workers_) aggregator.add(worker);
  aggregator.fill(summary);
  summary.epochs = epochs(spec, summary.samples, complete);
}

}  // namespace troupe::replay
