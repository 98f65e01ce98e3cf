#include "experiment/progress_book.hpp"

#include <algorithm>

namespace troupe::experiment {

void take(WorkerProgress& progress, const strategies::WorkerTotals& totals) {
  progress.exchange_s = core::seconds(totals.exchange);
  progress.wait_s = core::seconds(totals.wait);
  progress.exchanges = totals.exchanges;
  progress.dropped = totals.dropped;
  progress.skipped = totals.skipped;
  progress.passed = totals.passed;
  progress.staleness_sum = totals.staleness_sum;
  progress.staleness_count = totals.updates;
  progress.staleness_max = totals.staleness_max;
  progress.staleness.assign(totals.staleness.counts().begin(), totals.staleness.counts().end());
}

void add(WorkerProgress& progress, const WorkerProgress& earlier) {
  progress.steps += earlier.steps;
  progress.samples += earlier.samples;
  progress.exchanges += earlier.exchanges;
  progress.dropped += earlier.dropped;
  progress.skipped += earlier.skipped;
  progress.passed += earlier.passed;
  progress.bytes += earlier.bytes;
  progress.staleness_sum += earlier.staleness_sum;
  progress.staleness_count += earlier.staleness_count;
  progress.staleness_max = std::max(progress.staleness_max, earlier.staleness_max);
  for (std::size_t bin = 0; bin < std::min(progress.staleness.size(), earlier.staleness.size()); ++bin)
    progress.staleness[bin] += earlier.staleness[bin];
}

ProgressBook::ProgressBook(std::uint32_t workers, RunTotals before) : before_(std::move(before)), latest_(workers) {
  for (std::uint32_t w = 0; w < workers; ++w) latest_[w].worker = w;
}

void ProgressBook::add(const WorkerProgress& progress) {
  latest_.at(progress.worker) = progress;
  latest_[progress.worker].done.clear();
  epoch_loss_ += progress.loss_sum;
  epoch_top1_ += progress.top1;
  epoch_samples_ += progress.recent_samples;
}

void ProgressBook::level(std::uint64_t steps, std::uint64_t samples) {
  for (auto& worker : latest_) {
    worker.steps = steps;
    worker.samples = steps * samples;
  }
}

ProgressBook::EpochMeans ProgressBook::close_epoch() {
  const auto samples = static_cast<double>(std::max<std::uint64_t>(epoch_samples_, 1));
  const EpochMeans means{epoch_loss_ / samples, static_cast<double>(epoch_top1_) / samples, epoch_samples_};
  last_epoch_loss_ = means.loss;
  epoch_loss_ = 0;
  epoch_top1_ = epoch_samples_ = 0;
  return means;
}

std::uint64_t ProgressBook::steps() const {
  auto sum = before_.steps;
  for (const auto& worker : latest_) sum += worker.steps;
  return sum;
}

std::uint64_t ProgressBook::session_samples() const {
  std::uint64_t sum = 0;
  for (const auto& worker : latest_) sum += worker.samples;
  return sum;
}

std::uint64_t ProgressBook::samples() const { return before_.samples + session_samples(); }

RunTotals ProgressBook::totals(double train_s, double wall_s) const {
  return {.worker_steps = {}, .steps = steps(), .samples = samples(), .train_s = train_s, .wall_s = wall_s};
}

void ProgressBook::fill(Summary& summary) const {
  summary.steps = steps();
  summary.samples = samples();
  summary.per_worker = latest_;
  summary.train_loss = epoch_samples_ ? epoch_loss_ / static_cast<double>(epoch_samples_) : last_epoch_loss_;
  std::uint64_t staleness = 0;
  std::uint64_t counted = 0;
  for (const auto& worker : latest_) {
    summary.exchange_count += worker.exchanges;
    summary.exchange_bytes += worker.bytes;
    summary.exchange_dropped += worker.dropped;
    summary.exchange_skipped += worker.skipped;
    summary.staleness_max = std::max(summary.staleness_max, worker.staleness_max);
    staleness += worker.staleness_sum;
    counted += worker.staleness_count;
  }
  summary.staleness_mean = counted ? static_cast<double>(staleness) / static_cast<double>(counted) : 0;
}

}  // namespace troupe::experiment
