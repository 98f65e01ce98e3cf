/// Step times that were measured: by `troupe bench step --profile`, or by a run that was recorded. Pure functions of files.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"
#include "sim/cluster.hpp"

namespace troupe::sim {

/// docs/formats/step-profile.md.
struct StepProfile {
  std::string model;
  std::int64_t batch = 0;
  std::vector<double> steps_ms;
};
/// Errc::config names the file: it cannot be read, or is no profile.
[[nodiscard]] core::Result<StepProfile> load_profile(const std::string& path);

/// What a run's metrics.jsonl says of its workers' steps. A line is the sum of some steps, so each of them counts with their mean:
/// what varies from step to step within a tenth of a second is not in it.
struct RecordedRun {
  std::string model;
  std::vector<std::int64_t> batches;          // as data.batch
  std::vector<std::vector<double>> steps_ms;  // by worker; the run's own slowdown taken out
};
/// Errc::config: `directory` is no run's. Errc::data names file and line: what is no metrics; a worker without a step.
[[nodiscard]] core::Result<RecordedRun> load_recorded(const std::string& directory);

[[nodiscard]] StepTimes measured(const std::vector<double>& steps_ms);

}  // namespace troupe::sim
