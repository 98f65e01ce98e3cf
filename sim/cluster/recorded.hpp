/// Measured step times, from `troupe bench step --profile` or from a recorded run. Pure functions of files.
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
  std::uint64_t parameters = 0;  ///< of the model; 0: the file does not say, like those of version 0.1
  std::vector<double> steps_ms;
};
/// Longer steps in a profile or record are invalid.
inline constexpr double kMostStepMs = 1e9;
/// Errc::config names the file: it cannot be read or is not a profile.
[[nodiscard]] core::Result<StepProfile> load_profile(const std::string& path);

/// Steps of a worker from a run's metrics.jsonl. A line is the sum of several steps, so each of them counts with their mean: variation
/// between steps within a tenth of a second is lost.
struct RecordedSteps {
  double mean_ms = 0;  ///< without the slowdown of its session
  std::uint64_t count = 0;
};
/// Steps of all sessions with the last one's batch and micro-batches, of workers that the last one has.
struct RecordedRun {
  std::string model;
  std::uint64_t parameters = 0;                   // of the model
  std::vector<std::int64_t> batches;              // data.batch of the last session
  std::int64_t micro_batches = 1;                 // its train.accumulate
  std::vector<std::vector<RecordedSteps>> steps;  // by worker
};
/// Errc::config: `directory` is not a run directory. Errc::data names file and line: an invalid line, an impossible value, or a worker
/// without a step.
[[nodiscard]] core::Result<RecordedRun> load_recorded(const std::string& directory);

/// A step takes the sum of `micro_batches` of the times.
[[nodiscard]] StepTimes measured(const std::vector<double>& steps_ms, std::int64_t micro_batches = 1);
[[nodiscard]] StepTimes measured(const std::vector<RecordedSteps>& steps);

}  // namespace troupe::sim
