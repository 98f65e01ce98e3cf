/// The configuration under which journal segments were recorded, and the one under which they are replayed: the session's own plus
/// requested changes. Shared values are read-only.
#pragma once

#include <string>
#include <vector>

#include "experiment/exchange_plan.hpp"
#include "experiment/run_spec.hpp"

namespace troupe::replay {

struct Session {
  std::string file;                    // its configuration file
  std::vector<std::string> overrides;  // the changes, "key=value"
  experiment::RunSpec recorded;        // members, slots and batches of the segment's records
  experiment::RunSpec spec;            // with the changes
};

/// Which options a replay may change: all of train.*, and those of the strategy that keep the schedule
/// (StrategyInfo::replayable_options): "strategy.alpha, strategy.beta and train.*".
[[nodiscard]] std::string changeable(const std::string& strategy);

/// Checks that `overrides` change nothing else in the configuration `file`, without opening the data. Errc::config names the first key that
/// would change the schedule.
[[nodiscard]] core::Result<void> check_overrides(const std::string& file, const std::vector<std::string>& overrides);

/// Opens the data. Errors: those of Config::load, resolve() and build_run_spec().
[[nodiscard]] core::Result<Session> open_session(const std::string& file, const std::vector<std::string>& overrides);

/// Checks that members with the recorded schedule can follow the changed settings. `goes_on`: they begin in the middle of the run, with
/// their vectors of that time. Errc::config names the conflicting keys.
[[nodiscard]] core::Result<void> check_fit(const Session& session, bool goes_on);

/// A recording by a version with other arithmetic can be replayed if its rounding is known and no rule has changed. Errc::config names `file`.
[[nodiscard]] core::Result<void> check_arithmetic(const experiment::RunPlan& plan, const experiment::RunSpec& recorded,
                                                  const std::string& file);
/// A library does not reveal its order of summation, and no journal has it. Errc::config, or corrupt for a plan of another run.
[[nodiscard]] core::Result<void> check_exchange(const experiment::ExchangePlan& plan, const experiment::RunSpec& run,
                                                const std::string& file, bool same_numbers);

}  // namespace troupe::replay
