/// What journal segments were recorded under, and what they are replayed under: the configuration of their own session, with the
/// changes that a replay is asked for. Values that are shared are read only.
#pragma once

#include <string>
#include <vector>

#include "experiment/blueprint.hpp"

namespace troupe::replay {

struct Session {
  std::string file;                    // its configuration
  std::vector<std::string> overrides;  // the changes, "key=value"
  experiment::Blueprint recorded;      // whose members, slots and batches the segment's records are of
  experiment::Blueprint plan;          // with the changes
};

/// Opens the data. Errors: those of Config::load, resolve() and draw().
[[nodiscard]] core::Result<Session> open_session(const std::string& file, const std::vector<std::string>& overrides);

/// Can members with the recorded schedule be what the changed settings want? `goes_on`: they begin in the middle of the run, with
/// the vectors that they had then. Errc::config names the keys that keep them from it.
[[nodiscard]] core::Result<void> check_fit(const Session& session, bool goes_on);

}  // namespace troupe::replay
