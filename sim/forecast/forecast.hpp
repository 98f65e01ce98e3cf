/// Forecast of a run: checks a configuration and a cluster file, simulates the run, and sums it up as a real run does. All input errors
/// are found before the simulation starts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiment/reports.hpp"
#include "experiment/settings.hpp"
#include "sim/cluster/placement.hpp"
#include "sim/simulated_run.hpp"
#include "sim/simulation.hpp"
#include "sim/simulation_result.hpp"

namespace troupe::sim {

struct ForecastRequest {
  experiment::Settings settings;  ///< resolved for Use::forecast
  ClusterFile cluster;
  std::string model{};  ///< NAME of a [models.NAME] of the cluster file; empty: the configuration's model
  std::string
      from{};  ///< a recorded run's directory, or a step profile, whose step times replace the hosts'; empty: the hosts'
  std::vector<StepProfile>
      measured{};  ///< not empty: step times of this machine, which replace the hosts'; worker w has entry w mod size
  std::int64_t steps = 0;                       ///< per worker, as a single epoch; 0: the configuration's epochs
  std::function<void(double done)> progress{};  ///< called now and then with the share that is done; null: not called
  core::Duration pause{0};                      ///< of training at the end of an epoch, for its evaluation
  std::function<bool(const SimulatedMoment&)> watch{};  ///< as SimulationOptions::watch
  nn::Backend* gradients = nullptr;  ///< computes real gradients of the configuration's model and data; null: none
};

struct Forecast {
  experiment::Summary summary;  ///< in virtual seconds
  SimulationResult result;
  std::string cluster;     ///< file
  double step_ms = 0;      ///< worker 0's mean, without exchanges
  std::string step_times;  ///< where it comes from: "hosts.node.image_ms of lan.toml, for lenet"
  std::uint64_t seed = 0;
  std::vector<experiment::Note> notes{};  ///< as of a real run: likely unintended effects of the settings
};

/// Errc::config, data or io for a bad request (step times of another model; a model of the cluster file, or `steps`, cannot have gradients); peer_lost when all
/// workers are lost; internal for a deadlock; diverged.
[[nodiscard]] core::Result<Forecast> forecast(const ForecastRequest& request);

/// One line of JSON: the keys of a real run's summary (docs/formats/summary.md) and "simulated" (docs/formats/simulated.md).
[[nodiscard]] std::string to_json(const Forecast& forecast);
/// A short text for people.
[[nodiscard]] std::string to_text(const Forecast& forecast);

}  // namespace troupe::sim
