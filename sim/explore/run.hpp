/// One schedule, run with its invariants watching. Pure functions of their arguments.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/explore/schedule/schedule.hpp"

namespace troupe::explore {

struct Outcome {
  std::optional<std::string> violation{};  ///< what does not hold
  std::uint64_t hash = 0;                  ///< of all events, their times, and the numbers at the end
  std::uint64_t events = 0;
  std::uint64_t lost = 0;       ///< members
  std::uint64_t newcomers = 0;  ///< that took their places
  std::uint64_t discarded = 0;  ///< transmissions of what had been received
  std::vector<std::string> chronicle{};
};

/// How a schedule's strategy is made: the registry's way, but for tests.
using Maker = std::function<core::Result<std::unique_ptr<Strategy>>(const core::Config&, const Company&)>;

/// Errc::config when the strategy cannot have this company or these options: nothing was run then. `chronicle`: keep one.
[[nodiscard]] core::Result<Outcome> run_schedule(const Schedule& schedule, const Maker& make, bool chronicle = false);

/// A schedule as short as could be found that still shows what `schedule` does (the same violation, numbers in its text aside):
/// fewer steps, workers and shards, smaller numbers in options, constant delays, and each irregularity only when it is needed. `runs` counts.
struct Shrunk {
  Schedule schedule;
  std::string violation;
  std::vector<std::string> chronicle;
  std::uint64_t runs = 0;
};
[[nodiscard]] Shrunk shrink(const Schedule& schedule, const std::string& violation, const Maker& make);

}  // namespace troupe::explore
