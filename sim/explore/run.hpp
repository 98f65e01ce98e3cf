/// Runs one schedule and checks its invariants. Pure functions of their arguments.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/explore/schedule/schedule.hpp"

namespace troupe::explore {

struct ScheduleResult {
  std::optional<std::string> violation{};  ///< the violated rule, in words
  std::uint64_t hash = 0;                  ///< of all events, their times, and the final vectors
  std::uint64_t events = 0;
  std::uint64_t lost = 0;       ///< members
  std::uint64_t newcomers = 0;  ///< replacements of lost members
  std::uint64_t discarded = 0;  ///< duplicate transmissions
  std::vector<std::string> event_log{};
};

/// Makes a schedule's strategy: the registry's function, or a test's own.
using Maker = std::function<core::Result<std::unique_ptr<Strategy>>(const core::Config&, const RunShape&)>;

/// Errc::config when the strategy does not accept these members or options; then nothing has run. `event_log`: keep the event log.
[[nodiscard]] core::Result<ScheduleResult> run_schedule(const Schedule& schedule, const Maker& make,
                                                        bool event_log = false);

/// The simplest schedule found that still shows the violation of `schedule` (the same text, numbers aside): fewer steps, workers and
/// shards, smaller numbers in options, constant delays, and only the faults that are needed. `runs` counts the attempts.
struct Shrunk {
  Schedule schedule;
  std::string violation;
  std::vector<std::string> event_log;
  std::uint64_t runs = 0;
};
[[nodiscard]] Shrunk shrink(const Schedule& schedule, const std::string& violation, const Maker& make);

}  // namespace troupe::explore
