/// Many schedules, and what they show. A pure function of its options.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "sim/explore/run.hpp"

namespace troupe::explore {

struct ExplorationOptions {
  std::uint64_t runs = 1000;
  std::uint64_t seed = 1;                              // of the first; the next have the next ones
  std::string strategy{};                              // empty: all of them in turn
  std::uint64_t most_violations = 1;                   // ends when so many were found: the first is what one looks at
  std::function<void(std::uint64_t done)> progress{};  // after each
  Maker make{};                                        // empty: the registry's
};

struct Found {
  Schedule drawn;
  Shrunk shrunk;
};

struct Exploration {
  std::uint64_t runs = 0;
  std::uint64_t events = 0;
  std::uint64_t lost = 0;                        ///< members
  std::uint64_t newcomers = 0;                   ///< that took their places
  std::uint64_t discarded = 0;                   ///< transmissions that had arrived before
  std::uint64_t hash = 0;                        ///< of all runs' hashes in order
  std::map<std::string, std::uint64_t> runs_of;  ///< by strategy
  std::vector<Found> violations;
};

/// Errc::usage for a strategy that there is not; Errc::internal when the options that were drawn for a strategy are refused: its
/// space (sim/explore/schedule/space.hpp) is wrong.
[[nodiscard]] core::Result<Exploration> explore(const ExplorationOptions& options);

/// What is violated, the shortest schedule found and its events, and the command that repeats it.
[[nodiscard]] std::string to_text(const Found& found);
[[nodiscard]] std::string command(const Schedule& schedule);

}  // namespace troupe::explore
