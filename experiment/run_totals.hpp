/// A run's totals in a checkpoint: with them the next session continues the reports and the summary. Format: docs/formats/checkpoint.md.
/// Plain values.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "experiment/reports.hpp"
#include "strategies/coordination/evaluation_watch.hpp"

namespace troupe::experiment {

/// The current epoch, over all sessions that took part in it.
struct EpochTotals {
  double loss = 0;  // Σ over samples
  std::uint64_t top1 = 0;
  std::uint64_t samples = 0;
  double began_s = 0;    // RunTotals::train_s at its begin
  bool closed = false;   // the previous epoch is reported, and this one has no sample yet
  double last_loss = 0;  // mean of the previous epoch
};

/// The latest evaluation; unknown before the first.
struct TestScore {
  double loss = std::numeric_limits<double>::quiet_NaN();
  double accuracy = std::numeric_limits<double>::quiet_NaN();
  double top5 = -1;  // below 0: fewer than five classes
};

/// The part of a summary that workers account for: over the run's life, as far as it is known (a checkpoint of an older program has the
/// latest session only).
struct SessionTotals {
  double train_s = 0;
  std::uint64_t samples = 0;
  std::vector<WorkerProgress> workers{};  // sums only, by rank; none: unknown
  WorkerProgress gone{};                  // sums of workers that later sessions did not have, without the tables
};

/// Sums over the run's life, across resumes, unless noted.
struct RunTotals {
  std::vector<std::uint64_t> worker_steps;  // by rank: the step of the worker's host, as its session counts
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  double train_s = 0;  // training time
  double wall_s = 0;
  std::uint64_t center_version = 0;  // of the newest shard
  EpochTotals epoch{};
  TestScore test{};
  TestScore validation{kUnknown, kUnknown};
  coordination::WatchState watched{};  // what evaluations have led to so far
  SessionTotals session{};
};

/// What evaluations have led to, as a summary has it: the best validation score, the time to the target.
void take(Summary& summary, const coordination::WatchState& watched);

/// The totals as JSON.
[[nodiscard]] std::string to_text(const RunTotals& totals);
/// Parses to_text()'s JSON. Fields that version 0.1 did not write stay unknown; it had reported each ended epoch. Errc::corrupt.
[[nodiscard]] core::Result<RunTotals> parse_totals(std::string_view text);

/// For a run of version 0.1: fills in unknown fields of the last session that trained from its summary.json. Invalid text changes nothing.
void complete(RunTotals& totals, std::string_view summary);

}  // namespace troupe::experiment
