/// Sums up what workers report: the epoch's training loss, the run's totals, the summary's figures. One thread.
#pragma once

#include <vector>

#include "experiment/reports.hpp"
#include "experiment/run_totals.hpp"
#include "strategies/host/worker_host.hpp"

namespace troupe::experiment {

/// What a worker's host has counted, into its report: everything but times of its own, samples and bytes.
void take(WorkerProgress& progress, const strategies::WorkerTotals& totals);

/// Adds the sums of an earlier part of the same worker's session, times included; recent figures stay as they are.
void add(WorkerProgress& progress, const WorkerProgress& earlier);

class ProgressBook {
 public:
  ProgressBook(std::uint32_t workers, RunTotals before);

  void add(const WorkerProgress& progress);
  [[nodiscard]] const WorkerProgress& of(std::uint32_t worker) const { return latest_.at(worker); }
  /// All workers have made just so many steps in this session, of so many samples each.
  void level(std::uint64_t steps, std::uint64_t samples);
  /// The epoch ends after `train_s` seconds of training in the run's life: its means, over all sessions that had a part in it; then
  /// they start anew.
  struct EpochMeans {
    double loss = 0;
    double accuracy = 0;
    std::uint64_t samples = 0;
    double images_per_s = 0;
  };
  [[nodiscard]] EpochMeans close_epoch(double train_s);
  /// Nothing has been trained since an epoch was closed: by this session, or by the one before it.
  [[nodiscard]] bool epoch_closed() const noexcept { return epoch_.closed; }

  [[nodiscard]] std::uint64_t steps() const;  ///< over all workers, earlier sessions included
  [[nodiscard]] std::uint64_t samples() const;
  /// Of this session; of the latest that trained while this one has not.
  [[nodiscard]] SessionTotals session(double train_s) const;
  /// What a checkpoint keeps, but for worker_steps and center_version, which are the members', and the test's score.
  [[nodiscard]] RunTotals totals(double train_s, double wall_s) const;
  /// Fills the summary's counts, times, rate and exchange figures.
  void fill(Summary& summary, double train_s = 0) const;

 private:
  [[nodiscard]] std::uint64_t session_samples() const;
  RunTotals before_;
  std::vector<WorkerProgress> latest_;
  EpochTotals epoch_;
};

}  // namespace troupe::experiment
