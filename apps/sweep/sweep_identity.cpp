#include "apps/sweep/sweep_identity.hpp"

#include <algorithm>

#include "experiment/settings.hpp"

namespace troupe::apps {

bool are_same_settings(const std::vector<std::string>& recorded, const std::vector<std::string>& now) {
  return std::ranges::equal(recorded, now, [](const std::string& before, const std::string& after) {
    if (before == after) return true;
    const auto config = core::Config::parse(experiment::schema(), before, "sweep.jsonl", {});
    return config && config->to_toml() == after;
  });
}

}  // namespace troupe::apps
