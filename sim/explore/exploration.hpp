/// Runs many schedules and reports what they show. A pure function of its options.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "sim/explore/run.hpp"

namespace troupe::explore {

struct ExplorationOptions {
  std::uint64_t runs = 1000;
  std::uint64_t seed = 1;                              // of the first run; each next run has the next number
  std::string strategy{};                              // empty: all in turn
  std::uint64_t most_violations = 1;                   // stops after so many
  std::function<void(std::uint64_t done)> progress{};  // called after each run
  Maker make{};                                        // empty: the registry
};

struct Found {
  Schedule drawn;
  Shrunk shrunk;
};

struct Exploration {
  std::uint64_t runs = 0;
  std::uint64_t events = 0;
  std::uint64_t lost = 0;                        ///< members
  std::uint64_t newcomers = 0;                   ///< replacements of lost members
  std::uint64_t discarded = 0;                   ///< duplicate transmissions
  std::uint64_t hash = 0;                        ///< of all runs' hashes, in order
  std::map<std::string, std::uint64_t> runs_of;  ///< by strategy
  std::vector<Found> violations;
};

/// Errc::usage for an unknown strategy. Errc::internal for a strategy that declares no option space or no properties, and when options
/// drawn for a strategy are rejected: its space (StrategyInfo::option_space) is wrong.
[[nodiscard]] core::Result<Exploration> explore(const ExplorationOptions& options);

/// The violation, the shortest schedule found with its events, and the command that repeats it.
[[nodiscard]] std::string to_text(const Found& found);
[[nodiscard]] std::string command(const Schedule& schedule);

}  // namespace troupe::explore
