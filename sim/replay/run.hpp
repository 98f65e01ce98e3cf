/// `troupe replay`: all journal segments of a run directory, one after the other, each with the configuration of its own session.
/// Reads only. One thread.
#pragma once

#include <string>
#include <vector>

#include "nn/backend.hpp"
#include "sim/replay/report.hpp"

namespace troupe::replay {

struct ReplayRequest {
  std::string run;                       // its directory
  std::vector<std::string> overrides{};  // "key=value", for every session; none: every hash must be reached
};

/// All sessions compute on `backend`. A report is not yet a proof: ReplayReport::check() says whether anything was compared. Errors: Errc::diverged with the first event, member and numbers that are not the recording's,
/// or when the training itself diverges; Errc::corrupt for a journal that is damaged or has gaps, or whose start state is missing;
/// Errc::config when there is none, and with the key that the recording does not fit.
[[nodiscard]] core::Result<ReplayReport> replay_run(const ReplayRequest& request, nn::Backend& backend);

}  // namespace troupe::replay
