/// `troupe replay`: all journal segments of a run directory, one after the other, each with the configuration of its own session.
/// Reads only. One thread.
#pragma once

#include <string>
#include <vector>

#include "experiment/reports.hpp"
#include "nn/backend.hpp"

namespace troupe::replay {

struct ReplayRequest {
  std::string run;                       // its directory
  std::vector<std::string> overrides{};  // "key=value", for every session; none: every hash must be reached
};

struct SegmentReport {
  std::string path;
  std::size_t events = 0;    // in the segment, snapshots included
  std::size_t replayed = 0;  // fewer when it was cut off
  std::uint64_t hashes = 0;  // snapshots that were bit for bit the same
  bool complete = false;
};

struct ReplayReport {
  std::vector<SegmentReport> segments;
  experiment::Summary summary;  // computed anew; times are 0
};

/// All sessions compute on `backend`. Errors: Errc::diverged with the first event, member and numbers that are not the recording's,
/// or when the training itself diverges; Errc::corrupt for a journal that is damaged or has gaps, or whose start state is missing;
/// Errc::config when there is none, and with the key that the recording does not fit.
[[nodiscard]] core::Result<ReplayReport> replay_run(const ReplayRequest& request, nn::Backend& backend);

}  // namespace troupe::replay
