/// What the replay of a small run says, and what it must say when every hash is reached.
#pragma once

#include "sim/replay/run.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::tests {

/// `changes`: "key=value".
[[nodiscard]] core::Result<replay::ReplayReport> replayed(const SmallRun& run,
                                                          const std::vector<std::string>& changes = {});
/// Every event of every segment was replayed.
void expect_whole(const replay::ReplayReport& report);
/// And the end is the run's.
void expect_whole(const replay::ReplayReport& report, const experiment::RunEnd& end);

}  // namespace troupe::tests
