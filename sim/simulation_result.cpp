#include "sim/simulation_result.hpp"

#include <algorithm>
#include <limits>

#include "experiment/progress_aggregator.hpp"

namespace troupe::sim {

using strategies::Cause;

std::uint64_t SimulationResult::samples() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& worker : workers) sum += worker.samples;
  return sum;
}

double SimulationResult::images_per_s() const noexcept {
  return trained.count() > 0 ? static_cast<double>(samples()) / core::seconds(trained) : 0;
}

experiment::Summary summary_of(const SimulationResult& result, const SimulatedRun& run) {
  experiment::ProgressAggregator aggregator(run.workers, run.servers, {});
  for (std::uint32_t worker = 0; worker < run.workers; ++worker) {
    const auto& account = result.workers[worker];
    const auto& totals = account.totals;
    experiment::WorkerProgress progress{.worker = worker, .steps = account.steps, .samples = account.samples};
    progress.compute_s = core::seconds(account.compute + totals.local);
    experiment::take(progress, totals);
    progress.bytes = account.bytes;
    if (run.workers + run.servers <= kMostInMatrix) {
      progress.waits.assign(run.workers + run.servers, 0);
      for (const auto& [cause, time] : totals.waits.by_cause())
        progress.waits[cause.kind == Cause::Kind::worker ? cause.id : run.workers + cause.id] = core::seconds(time);
    }
    aggregator.add(progress);
  }
  experiment::Summary summary;
  aggregator.fill(summary);
  summary.workers = run.workers;
  summary.servers = run.servers;
  summary.epochs = result.epochs;
  summary.stopped_by = result.stopped_by;
  summary.wall_s = core::seconds(result.wall);
  summary.images_per_s = result.images_per_s();
  summary.train_loss = summary.test_loss = summary.test_accuracy = std::numeric_limits<double>::quiet_NaN();
  if (result.learned) {
    const auto& test = result.learned->test;
    summary.train_loss = result.learned->train_loss;
    summary.test_loss = test.loss;
    summary.test_accuracy = test.accuracy();
    summary.test_top5 = test.top5 < 0 ? -1 : static_cast<double>(test.top5) / static_cast<double>(test.samples);
    summary.center_hash = result.learned->model_hash;
  }
  return summary;
}

std::vector<WaitEntry> longest_waits(const SimulationResult& result, std::size_t most) {
  std::vector<WaitEntry> entries;
  for (strategies::WorkerId worker = 0; worker < result.workers.size(); ++worker)
    for (const auto& [cause, time] : result.workers[worker].totals.waits.by_cause())
      entries.push_back({worker, cause, time});
  // Equal waits in order of ranks: the same run gives the same list.
  const auto longer = [](const WaitEntry& a, const WaitEntry& b) {
    return std::tie(b.time, a.waiter, a.cause) < std::tie(a.time, b.waiter, b.cause);
  };
  const auto end = entries.begin() + static_cast<std::ptrdiff_t>(std::min(most, entries.size()));
  std::partial_sort(entries.begin(), end, entries.end(), longer);
  entries.erase(end, entries.end());
  return entries;
}

}  // namespace troupe::sim
