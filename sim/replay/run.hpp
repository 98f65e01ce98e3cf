/// `troupe replay`: replays all journal segments of a run directory in order, each with the configuration of its own session. Writes nothing.
/// One thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nn/backend.hpp"
#include "sim/replay/report.hpp"
#include "sim/replay/result/verification.hpp"
#include "sim/replay/until.hpp"

namespace troupe::replay {

struct ReplayRequest {
  std::string run;                       // run directory
  std::vector<std::string> overrides{};  // "key=value", for every session; none: every hash must match
  /// Called often: the segments replayed so far, the one under way in part, of how many. Null: not called.
  std::function<void(double done, std::size_t segments)> progress{};
  /// Called for each segment that was replayed with the recorded numbers, as far as it came, also where an error follows. Null: not called.
  std::function<void(SegmentVerification)> verified{};
};

/// All sessions compute on `backend`. A report is no proof yet: ReplayReport::check() tells whether anything was compared. Errors:
/// Errc::diverged with the first event, member and numbers that differ from the recording, or when the training itself diverges;
/// Errc::corrupt for a journal that is damaged or has gaps, or whose start state is missing; Errc::config when there is no journal, and
/// with the key that does not fit the recording.
[[nodiscard]] core::Result<ReplayReport> replay_run(const ReplayRequest& request, nn::Backend& backend);

/// Replays the one segment that has `until` from its begin up to there. Errors as replay_run(); Errc::usage: no segment comes so far.
[[nodiscard]] core::Result<ReachedState> replay_until(const ReplayRequest& request, const Until& until,
                                                      nn::Backend& backend);

}  // namespace troupe::replay
