/// Replays a small run, and checks that the replay reaches every hash.
#pragma once

#include <functional>
#include <memory>

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

/// A run with a bounded journal, and the end of its training.
struct BoundedRun {
  std::unique_ptr<SmallRun> run;
  experiment::RunEnd end;
};
/// Trains with `options`, which bound the journal, until its oldest segments have been removed. A segment begins only once its start state
/// is on disk, and training does not wait for a slow disk: a run that ended too soon is repeated with steps of four times the length. Fails
/// the test if none was long enough.
[[nodiscard]] BoundedRun train_bounded(const std::vector<std::string>& options);

}  // namespace troupe::tests
