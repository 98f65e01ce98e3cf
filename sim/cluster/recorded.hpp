/// Step times that were measured: by `troupe bench step --profile`, or by a run that was recorded. Pure functions of files.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"
#include "sim/cluster/cluster.hpp"

namespace troupe::sim {

/// docs/formats/step-profile.md.
struct StepProfile {
  std::string model;
  std::int64_t batch = 0;
  std::vector<double> steps_ms;
};
/// A step of a profile or record that takes longer is none.
inline constexpr double kMostStepMs = 1e9;
/// Errc::config names the file: it cannot be read, or is no profile.
[[nodiscard]] core::Result<StepProfile> load_profile(const std::string& path);

/// What a run's metrics.jsonl says of its workers' steps. A line is the sum of some steps, so each of them counts with their mean:
/// what varies from step to step within a tenth of a second is not in it.
struct RecordedSteps {
  double mean_ms = 0;  ///< the run's own slowdown taken out
  std::uint64_t count = 0;
};
struct RecordedRun {
  std::string model;
  std::vector<std::int64_t> batches;              // as data.batch
  std::vector<std::vector<RecordedSteps>> steps;  // by worker
};
/// Errc::config: `directory` is no run's. Errc::data names file and line: what is no metrics, or cannot be; a worker without a step.
[[nodiscard]] core::Result<RecordedRun> load_recorded(const std::string& directory);

[[nodiscard]] StepTimes measured(const std::vector<double>& steps_ms);
[[nodiscard]] StepTimes measured(const std::vector<RecordedSteps>& steps);

}  // namespace troupe::sim
