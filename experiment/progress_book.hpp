/// Sums up what workers report: the epoch's training loss, the run's totals, the summary's figures. One thread.
#pragma once

#include <vector>

#include "experiment/checkpoint.hpp"
#include "experiment/reports.hpp"
#include "strategies/host/worker_host.hpp"

namespace troupe::experiment {

/// What a worker's host has counted, into its report: everything but times of its own, samples and bytes.
void take(WorkerProgress& progress, const strategies::WorkerTotals& totals);

/// Adds the counts of an earlier part of the same worker's session; times and recent figures stay as they are.
void add(WorkerProgress& progress, const WorkerProgress& earlier);

class ProgressBook {
 public:
  ProgressBook(std::uint32_t workers, RunTotals before);

  void add(const WorkerProgress& progress);
  [[nodiscard]] const WorkerProgress& of(std::uint32_t worker) const { return latest_.at(worker); }
  /// All workers have made just so many steps in this session, of so many samples each.
  void level(std::uint64_t steps, std::uint64_t samples);
  /// The epoch ends: its means so far, then they start anew.
  struct EpochMeans {
    double loss = 0;
    double accuracy = 0;
    std::uint64_t samples = 0;
  };
  [[nodiscard]] EpochMeans close_epoch();

  [[nodiscard]] std::uint64_t steps() const;  ///< over all workers, earlier sessions included
  [[nodiscard]] std::uint64_t samples() const;
  [[nodiscard]] std::uint64_t session_samples() const;  ///< since this session began
  /// Without worker_steps, which are the hosts'.
  [[nodiscard]] RunTotals totals(double train_s, double wall_s) const;
  /// Fills the summary's counts, times and exchange figures.
  void fill(Summary& summary) const;

 private:
  RunTotals before_;
  std::vector<WorkerProgress> latest_;
  double epoch_loss_ = 0;
  std::uint64_t epoch_top1_ = 0;
  std::uint64_t epoch_samples_ = 0;
  double last_epoch_loss_ = 0;
};

}  // namespace troupe::experiment
