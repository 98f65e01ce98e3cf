/// On what the results of a sweep depend: they are of no use in a sweep for which this differs. Pure functions.
#pragma once

#include <string>
#include <vector>

namespace troupe::apps {

struct SweepIdentity {
  std::string fingerprint;              // of ranges, rungs, metric and goal
  std::vector<std::string> settings{};  // of a run of each strategy, as TOML: what does not vary
  /// A hash of all these, in which a key that a release adds makes every sweep another one. Logs of format 1 have it.
  std::string whole{};
};

/// Whether settings that a release has recorded are `now`'s, once the keys that it did not know have their defaults.
[[nodiscard]] bool are_same_settings(const std::vector<std::string>& recorded, const std::vector<std::string>& now);

}  // namespace troupe::apps
