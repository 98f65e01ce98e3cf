/// Sums the reports of workers: the epoch's training loss, the run's totals, the summary's figures. One thread.
#pragma once

#include <vector>

#include "experiment/reports.hpp"
#include "experiment/run_totals.hpp"
#include "strategies/host/worker_host.hpp"

namespace troupe::experiment {

/// Copies the counts of a worker's host into its report: everything except its own times, samples and bytes.
void take(WorkerProgress& progress, const strategies::WorkerTotals& totals);

/// Counts the norm of one step's gradient.
void add_norm(WorkerProgress& progress, double norm);

/// Adds the sums of an earlier part of the same worker's session or run, times included; figures since the last report do not change.
void add(WorkerProgress& progress, const WorkerProgress& earlier);

class ProgressAggregator {
 public:
  ProgressAggregator(std::uint32_t workers, std::uint32_t servers, RunTotals before);

  void add(const WorkerProgress& progress);
  [[nodiscard]] const WorkerProgress& of(std::uint32_t worker) const { return latest_.at(worker); }
  [[nodiscard]] const std::vector<WorkerProgress>& workers() const noexcept { return latest_; }
  /// Sets every worker to `steps` steps in this session, of `samples` samples each.
  void level(std::uint64_t steps, std::uint64_t samples);
  /// Ends the epoch at `train_s` seconds of the run's training time: returns its means over all sessions that took part, and resets them.
  struct EpochMeans {
    double loss = 0;
    double accuracy = 0;
    std::uint64_t samples = 0;
    double images_per_s = 0;
  };
  [[nodiscard]] EpochMeans close_epoch(double train_s);
  [[nodiscard]] const EpochTotals& epoch() const noexcept { return epoch_; }
  /// No training since the last epoch was closed, by this session or the one before.
  [[nodiscard]] bool epoch_closed() const noexcept { return epoch_.closed; }

  [[nodiscard]] std::uint64_t steps() const;  ///< over all workers, earlier sessions included
  [[nodiscard]] std::uint64_t samples() const;
  /// The workers' sums over the run's life: those of earlier sessions and of this one, by rank. Ranks that this session does not have are
  /// left out of the rows, but not of the run's sums.
  [[nodiscard]] SessionTotals life(double train_s) const;
  /// The totals for a checkpoint, except worker_steps and center_version, which members report, and the test score.
  [[nodiscard]] RunTotals totals(double train_s, double wall_s) const;
  /// Fills in the summary's counts, times, rate and exchange figures.
  void fill(Summary& summary, double train_s = 0) const;

 private:
  [[nodiscard]] std::uint64_t session_samples() const;
  RunTotals before_;
  std::uint32_t servers_;
  std::vector<WorkerProgress> latest_;
  EpochTotals epoch_;
};

}  // namespace troupe::experiment
