/// Where a run would be by now under another strategy, or under its own: simulated from the times that it has measured itself. Thread rule:
/// a pure function of the run's files; blocks for as long as its limits let it.
#pragma once

#include <chrono>
#include <compare>
#include <stop_token>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "service/forecast/measured_run.hpp"

namespace troupe::service {

struct ForecastQuestion {
  std::string run{};                     // relative to the directory of runs
  std::string strategy{};                // empty: the run's own
  std::vector<std::string> overrides{};  // "strategy.tau=4"; check_question() has been passed
  auto operator<=>(const ForecastQuestion&) const = default;
};

struct ForecastLimits {
  std::chrono::milliseconds computing{10'000};  // then the forecast ends where it is
  std::size_t workers = 1024;
};

/// Errc::usage: a strategy that does not exist; a key other than of [strategy], exchange.algorithm, exchange.wire and cluster.servers: what
/// has been measured holds for the rest.
[[nodiscard]] core::Result<void> check_question(const ForecastQuestion& question);

/// docs/formats/service.md, "Forecast of a run". Errors as measure_run() and sim::forecast(); config also: more workers than the limit.
[[nodiscard]] core::Result<nlohmann::ordered_json> forecast_run(const std::string& directory,
                                                                const ForecastQuestion& question,
                                                                const ForecastLimits& limits,
                                                                const std::stop_token& stop);

}  // namespace troupe::service
