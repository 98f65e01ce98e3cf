#include "experiment/progress_aggregator.hpp"

#include <algorithm>

namespace troupe::experiment {

namespace {

/// The columns of a row of waits are the workers and then the servers; their numbers may have changed. The last server has the parts of the
/// centre of those that are gone, and their column.
std::vector<double> fitted(const std::vector<double>& waits, std::size_t workers_then, std::size_t workers_now,
                           std::size_t servers_now) {
  if (waits.empty()) return {};
  std::vector<double> row(workers_now + servers_now, 0);
  for (std::size_t column = 0; column < waits.size(); ++column) {
    if (column < workers_then && column < workers_now) row[column] = waits[column];
    if (column < workers_then || servers_now == 0) continue;
    row[workers_now + std::min(column - workers_then, servers_now - 1)] += waits[column];
  }
  return row;
}

}  // namespace

void take(WorkerProgress& progress, const strategies::WorkerTotals& totals) {
  progress.exchange_s = core::seconds(totals.exchange);
  progress.wait_s = core::seconds(totals.wait);
  progress.exchanges = totals.exchanges;
  progress.dropped = totals.dropped;
  progress.skipped = totals.skipped;
  progress.refused = totals.refused;
  progress.passed = totals.passed;
  progress.staleness_sum = totals.staleness_sum;
  progress.staleness_count = totals.updates;
  progress.staleness_max = totals.staleness_max;
  progress.staleness.assign(totals.staleness.counts().begin(), totals.staleness.counts().end());
}

void add_norm(WorkerProgress& progress, double norm) {
  progress.norm_sum += norm;
  progress.norm_max = std::max(progress.norm_max, norm);
  progress.recent_norm_sum += norm;
  ++progress.recent_steps;
}

void add(WorkerProgress& progress, const WorkerProgress& earlier) {
  progress.steps += earlier.steps;
  progress.samples += earlier.samples;
  progress.compute_s += earlier.compute_s;
  progress.forward_s += earlier.forward_s;
  progress.backward_s += earlier.backward_s;
  progress.optimizer_s += earlier.optimizer_s;
  progress.exchange_s += earlier.exchange_s;
  progress.wait_s += earlier.wait_s;
  progress.load_s += earlier.load_s;
  progress.exchanges += earlier.exchanges;
  progress.dropped += earlier.dropped;
  progress.skipped += earlier.skipped;
  progress.refused += earlier.refused;
  progress.passed += earlier.passed;
  progress.replaced += earlier.replaced;
  progress.bytes += earlier.bytes;
  for (const auto& row : earlier.traffic) count(progress.traffic, row);
  progress.staleness_sum += earlier.staleness_sum;
  progress.staleness_count += earlier.staleness_count;
  progress.staleness_max = std::max(progress.staleness_max, earlier.staleness_max);
  progress.norm_sum += earlier.norm_sum;
  progress.norm_max = std::max(progress.norm_max, earlier.norm_max);
  for (std::size_t bin = 0; bin < std::min(progress.staleness.size(), earlier.staleness.size()); ++bin)
    progress.staleness[bin] += earlier.staleness[bin];
  for (std::size_t cause = 0; cause < std::min(progress.waits.size(), earlier.waits.size()); ++cause)
    progress.waits[cause] += earlier.waits[cause];
}

ProgressAggregator::ProgressAggregator(std::uint32_t workers, std::uint32_t servers, RunTotals before)
    : before_(std::move(before)), servers_(servers), latest_(workers), epoch_(before_.epoch) {
  for (std::uint32_t w = 0; w < workers; ++w) latest_[w].worker = w;
}

void ProgressAggregator::add(const WorkerProgress& progress) {
  auto& latest = latest_.at(progress.worker);
  latest = progress;
  latest.done.clear();
  latest.given_up.clear();
  epoch_.loss += progress.loss_sum;
  epoch_.top1 += static_cast<std::uint64_t>(std::max<std::int64_t>(progress.top1, 0));
  epoch_.samples += progress.recent_samples;
  if (progress.recent_samples > 0) epoch_.closed = false;
}

void ProgressAggregator::level(std::uint64_t steps, std::uint64_t samples) {
  for (auto& worker : latest_) {
    worker.steps = steps;
    worker.samples = steps * samples;
  }
}

ProgressAggregator::EpochMeans ProgressAggregator::close_epoch(double train_s) {
  const auto samples = static_cast<double>(std::max<std::uint64_t>(epoch_.samples, 1));
  EpochMeans means{epoch_.loss / samples, static_cast<double>(epoch_.top1) / samples, epoch_.samples};
  if (train_s > epoch_.began_s) means.images_per_s = static_cast<double>(epoch_.samples) / (train_s - epoch_.began_s);
  epoch_ = {.began_s = train_s, .closed = true, .last_loss = means.loss};
  return means;
}

std::uint64_t ProgressAggregator::steps() const {
  auto sum = before_.steps;
  for (const auto& worker : latest_) sum += worker.steps;
  return sum;
}

std::uint64_t ProgressAggregator::session_samples() const {
  std::uint64_t sum = 0;
  for (const auto& worker : latest_) sum += worker.samples;
  return sum;
}

std::uint64_t ProgressAggregator::samples() const { return before_.samples + session_samples(); }

SessionTotals ProgressAggregator::life(double train_s) const {
  const auto& before = before_.session;
  SessionTotals life = before;
  life.workers = latest_;
  if (session_samples() > 0 || before.workers.empty()) {
    life.train_s += train_s - before_.train_s;
    life.samples += session_samples();
  } else {  // waiting for a batch that never came
    for (auto& worker : life.workers) worker = {.worker = worker.worker};
  }
  for (std::size_t w = 0; w < before.workers.size(); ++w) {
    auto known = before.workers[w];
    if (w >= life.workers.size()) {
      known.traffic.clear();  // its members may be others now
      experiment::add(life.gone, known);
      continue;
    }
    auto& worker = life.workers[w];
    known.waits = fitted(known.waits, before.workers.size(), latest_.size(), servers_);
    worker.waits.resize(std::max(worker.waits.size(), known.waits.size()));  // none before its first report
    worker.staleness.resize(std::max(worker.staleness.size(), known.staleness.size()));
    experiment::add(worker, known);
  }
  // A worker without a report has none; all rows of a table are as long.
  const bool has_waits = std::ranges::any_of(life.workers, [](const auto& worker) { return !worker.waits.empty(); });
  std::size_t bins = 0;
  for (const auto& worker : life.workers) bins = std::max(bins, worker.staleness.size());
  for (auto& worker : life.workers) {
    if (has_waits) worker.waits.resize(latest_.size() + servers_);
    worker.staleness.resize(bins);
  }
  return life;
}

RunTotals ProgressAggregator::totals(double train_s, double wall_s) const {
  return {.worker_steps = {},
          .steps = steps(),
          .samples = samples(),
          .train_s = train_s,
          .wall_s = wall_s,
          .center_version = 0,
          .epoch = epoch_,
          .test = before_.test,
          .session = life(train_s)};
}

void ProgressAggregator::fill(Summary& summary, double train_s) const {
  const auto session = life(train_s);
  summary.steps = steps();
  summary.samples = samples();
  summary.per_worker = session.workers;
  summary.images_per_s = session.train_s > 0 ? static_cast<double>(session.samples) / session.train_s : 0;
  summary.train_loss = epoch_.samples ? epoch_.loss / static_cast<double>(epoch_.samples) : epoch_.last_loss;
  std::uint64_t staleness = 0;
  std::uint64_t counted = 0;
  const auto count = [&](const WorkerProgress& worker) {
    summary.exchange_count += worker.exchanges;
    summary.exchange_bytes += worker.bytes;
    summary.exchange_dropped += worker.dropped;
    summary.exchange_skipped += worker.skipped;
    summary.refused += worker.refused;
    summary.staleness_max = std::max(summary.staleness_max, worker.staleness_max);
    staleness += worker.staleness_sum;
    counted += worker.staleness_count;
  };
  std::ranges::for_each(session.workers, count);
  count(session.gone);
  summary.staleness_mean = counted ? static_cast<double>(staleness) / static_cast<double>(counted) : 0;
}

}  // namespace troupe::experiment
