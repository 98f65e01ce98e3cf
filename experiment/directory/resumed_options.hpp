/// The options of a run that is resumed with another strategy: its config.toml spells out every option of the strategy before. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "core/config/config.hpp"

namespace troupe::experiment {

/// What `overrides` ("key=value") must follow so that options that were at the defaults of the recorded strategy are at the new one's.
/// None: the strategy stays.
[[nodiscard]] std::vector<std::string> defaults_of_strategy(const core::Config& recorded,
                                                            const std::vector<std::string>& overrides);

/// Which options the new strategy keeps of the recorded one, in one line; empty: none, or the strategy stays.
[[nodiscard]] std::string kept_options(const core::Config& now, const core::Config& recorded);

}  // namespace troupe::experiment
