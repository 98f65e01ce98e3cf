/// A run's forecast: what a configuration and a cluster file say, checked and put together, simulated, and summed up as a real run
/// is. Everything that can be wrong is found before anything starts.
#pragma once

#include <string>
#include <vector>

#include "experiment/reports.hpp"
#include "experiment/settings.hpp"
#include "sim/outcome.hpp"
#include "sim/cluster/placement.hpp"
#include "sim/plan.hpp"

namespace troupe::sim {

struct ForecastRequest {
  experiment::Settings settings;  ///< resolved for Use::forecast
  ClusterFile cluster;
  std::string model{};  ///< a [models.NAME] of the cluster file in place of the configuration's model; empty: that one
  std::string from{};   ///< directory of a recorded run, whose step times take the place of the hosts'; empty: theirs
  std::int64_t steps = 0;            ///< per worker, in one epoch of its own; 0: the configuration's epochs
  nn::Backend* gradients = nullptr;  ///< computes real ones, of the configuration's model on its data; null: none are
};

struct Forecast {
  experiment::Summary summary;  ///< in virtual seconds
  Outcome outcome;
  std::string cluster;  ///< file
  std::uint64_t seed = 0;
  std::vector<experiment::Note> notes{};  ///< as a real run's: what these settings may do and hardly mean
};

/// Errc::config, data or io for what is wrong with the request (a model of the cluster file or another length have no gradients),
/// peer_lost when all workers are lost, internal for a company that does not come to its end; diverged.
[[nodiscard]] core::Result<Forecast> forecast(const ForecastRequest& request);

/// One line: the keys of a real run's summary (docs/formats/summary.md), and "simulated" (docs/formats/simulated.md).
[[nodiscard]] std::string to_json(const Forecast& forecast);
/// A few lines for people.
[[nodiscard]] std::string to_text(const Forecast& forecast);

}  // namespace troupe::sim
