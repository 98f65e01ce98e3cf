/// Replays a small run, and checks that the replay reaches every hash.
#pragma once

#include <functional>

#include <nlohmann/json_fwd.hpp>

#include "sim/replay/run.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::tests {

/// `changes`: "key=value".
[[nodiscard]] core::Result<replay::ReplayReport> replayed(const SmallRun& run,
                                                          const std::vector<std::string>& changes = {});
/// Expects that every event of every segment was replayed.
void expect_whole(const replay::ReplayReport& report);
/// Also expects that the final state is the run's.
void expect_whole(const replay::ReplayReport& report, const experiment::RunEnd& end);

/// Changes the plan of the newest segment of a recorded run, and its hash in the journal.
void change_plan(const SmallRun& run, const std::function<void(nlohmann::json&)>& change);

}  // namespace troupe::tests
