/// The breakdown of a step as text and as JSON, for `troupe bench step --breakdown`. Pure functions.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "cpu/breakdown.hpp"
#include "cpu/ceilings.hpp"

namespace troupe::apps {

/// One line per layer and part of the step (forward, backward), the longest first, at most `most` of them, then the sums by kind of operation;
/// each beside what the machine reaches at best.
[[nodiscard]] std::string breakdown_text(const cpu::Breakdown& breakdown, const cpu::Ceilings& ceilings,
                                         std::size_t most);

/// All operations in the order of the step.
[[nodiscard]] nlohmann::ordered_json breakdown_json(const cpu::Breakdown& breakdown, const cpu::Ceilings& ceilings);

}  // namespace troupe::apps
