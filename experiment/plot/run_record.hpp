/// What pictures of a run are drawn from: metrics.jsonl and summary.json of its directory. Reads only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace troupe::plot {

/// One evaluation.
struct EpochPoint {
  double epoch = 0;
  double seconds = 0;                            // of training, since the run began; grows over resumes
  double train_loss = 0, test_loss = 0;          // NaN where it was not finite
  double train_accuracy = 0, test_accuracy = 0;  // in [0, 1]
};

/// Row w: worker w stood still; columns: whom for, workers and then servers.
struct Waits {
  std::size_t workers = 0, servers = 0;
  std::vector<std::vector<double>> seconds;
};

/// Bin k counts updates with edges[k] ≤ staleness < edges[k + 1]; the last is open.
struct Staleness {
  std::vector<double> edges;
  std::vector<std::vector<double>> workers;  // [workers][bins]
};

struct RunRecord {
  std::string label;  // the directory's name without its time
  std::string strategy;
  std::vector<EpochPoint> epochs;
  std::optional<Waits> waits;          // nothing when the summary has none, or nobody waited
  std::optional<Staleness> staleness;  // nothing when the summary has none, or nobody pushed
};

/// Errc::config when the directory has no metrics.jsonl. Lines that are no JSON are passed over.
[[nodiscard]] core::Result<RunRecord> read_run(const std::string& directory);

/// "easgd_tau=4" of "runs/20260102-030405-easgd_tau=4".
[[nodiscard]] std::string label_of(const std::string& directory);

}  // namespace troupe::plot
