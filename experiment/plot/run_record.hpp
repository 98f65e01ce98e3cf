/// The data of a run's pictures, from metrics.jsonl and summary.json of its directory. Reads only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace troupe::plot {

/// One evaluation.
struct EpochPoint {
  double epoch = 0;
  double seconds = 0;                            // training time since the run's begin; grows over resumes
  double train_loss = 0, test_loss = 0;          // NaN where not finite
  double train_accuracy = 0, test_accuracy = 0;  // in [0, 1]
};

/// Row w: waits of worker w; columns: the awaited workers, then servers.
struct Waits {
  std::size_t workers = 0, servers = 0;
  std::vector<std::vector<double>> seconds;
};

/// Bin k counts updates with edges[k] ≤ staleness < edges[k + 1]; the last bin is open.
struct Staleness {
  std::vector<double> edges;
  std::vector<std::vector<double>> workers;  // [workers][bins]
};

struct RunRecord {
  std::string label;  // the directory's name without its time
  std::string strategy;
  std::vector<EpochPoint> epochs;
  std::optional<Waits> waits;          // none when the summary has none, or no worker waited
  std::optional<Staleness> staleness;  // none when the summary has none, or no worker pushed
};

/// Errc::config when the directory has no metrics.jsonl. Lines that are not JSON are ignored.
[[nodiscard]] core::Result<RunRecord> read_run(const std::string& directory);

/// "easgd_tau=4" of "runs/20260102-030405-easgd_tau=4".
[[nodiscard]] std::string label_of(const std::string& directory);

}  // namespace troupe::plot
