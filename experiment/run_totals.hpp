/// What a checkpoint keeps of a run's accounts, so that the next session reports and sums up as if it were the same one.
/// Format: docs/formats/checkpoint.md. Plain values.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "experiment/reports.hpp"

namespace troupe::experiment {

/// The epoch under way, over all sessions that had a part in it.
struct EpochTotals {
  double loss = 0;  // Σ over samples
  std::uint64_t top1 = 0;
  std::uint64_t samples = 0;
  double began_s = 0;    // RunTotals::train_s then
  bool closed = false;   // the one before has been reported, and no sample of this one has been
  double last_loss = 0;  // mean of the one before
};

/// The latest evaluation; before the first one it is not known.
struct TestScore {
  double loss = std::numeric_limits<double>::quiet_NaN();
  double accuracy = std::numeric_limits<double>::quiet_NaN();
  double top5 = -1;  // below 0: fewer than five classes
};

/// The latest session that trained: what a summary has of one session.
struct SessionTotals {
  double train_s = 0;
  std::uint64_t samples = 0;
  std::vector<WorkerProgress> workers{};  // sums only, by rank; none: not known
};

/// Sums over the run's life, across resumes, but where said.
struct RunTotals {
  std::vector<std::uint64_t> worker_steps;  // by rank: where each worker's host stands, as its session counts
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  double train_s = 0;  // training time
  double wall_s = 0;
  std::uint64_t center_version = 0;  // of the newest shard
  EpochTotals epoch{};
  TestScore test{};
  SessionTotals session{};
};

/// As JSON.
[[nodiscard]] std::string to_text(const RunTotals& totals);
/// And back. What version 0.1 did not write is not known: it had reported each epoch that was over. Errc::corrupt.
[[nodiscard]] core::Result<RunTotals> parse_totals(std::string_view text);

/// What `totals` do not know of the session that trained last, from its summary.json: of a run of version 0.1. Text that is none
/// changes nothing.
void complete(RunTotals& totals, std::string_view summary);

}  // namespace troupe::experiment
