/// What a strategy declares for the schedule search, drawn for one run: options from its option space, and an optimizer.
#pragma once

#include <string>
#include <vector>

#include "core/random.hpp"
#include "sim/explore/world/words.hpp"

namespace troupe::explore {

/// The registry's row. Errc::usage for a name that it does not have. Errc::internal for a strategy that declares no option space or no
/// properties: it is not searched with defaults, as if that were enough.
[[nodiscard]] core::Result<const StrategyInfo*> find_searched(const std::string& strategy);

/// "strategy.tau=2", …: arguments of --set on the command line, valid for this run shape. A pure function of its arguments.
[[nodiscard]] std::vector<std::string> draw_options(const StrategyInfo& strategy, const RunShape& shape,
                                                    core::Random& random);

/// The optimizer of local steps that the strategy requires; else any.
[[nodiscard]] core::OptimizerStep draw_optimizer(const StrategyInfo& strategy, core::Random& random);

}  // namespace troupe::explore
