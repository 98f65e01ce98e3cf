/// The options of a run that is resumed with another strategy: its config.toml spells out every option of the strategy before. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "core/config/config.hpp"

namespace troupe::experiment {

/// The overrides to put before `overrides` ("key=value"): options that stood at a default of the recorded strategy take the default of
/// the new one, which `overrides` name. Empty: the strategy stays.
[[nodiscard]] std::vector<std::string> defaults_of_strategy(const core::Config& recorded,
                                                            const std::vector<std::string>& overrides);

/// Which options of both strategies stay as they were set, and which take another value by default, in one line; empty: none, or the
/// strategy stays.
[[nodiscard]] std::string other_strategy_note(const core::Config& now, const core::Config& recorded);

}  // namespace troupe::experiment
