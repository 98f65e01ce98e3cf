#include "sim/explore/schedule/space.hpp"

#include "strategies/registry/registry.hpp"

namespace troupe::explore {
namespace {

void draw(const OptionSpace& space, core::Random& random, std::vector<std::string>& options) {
  for (const auto& [key, value] : space.set) options.push_back("strategy." + key + "=" + value);
  for (const auto& choice : space.choices) draw(choice.at(random.below(choice.size())), random, options);
}

}  // namespace

core::Result<const StrategyInfo*> find_searched(const std::string& strategy) {
  const auto* row = find(strategy);
  if (!row) return core::fail(core::Errc::usage, "no strategy is called \"" + strategy + "\": see `troupe strategies`");
  if (!row->option_space || !row->properties)
    return core::fail(core::Errc::internal, "strategy " + strategy + " declares no " +
                                                (row->option_space ? "properties" : "option space") +
                                                " for the schedule search: see StrategyInfo (strategies/strategy.hpp)");
  return row;
}

std::vector<std::string> draw_options(const StrategyInfo& strategy, const RunShape& shape, core::Random& random) {
  std::vector<std::string> options;
  draw(strategy.option_space(shape), random, options);
  return options;
}

core::OptimizerStep draw_optimizer(const StrategyInfo& strategy, core::Random& random) {
  if (strategy.local_optimizer) return {.kind = *strategy.local_optimizer, .lr = 0.02F, .momentum = 0.8F};
  switch (random.below(3)) {
    case 0: return {.lr = 0.05F};
    case 1: return {.lr = 0.05F, .clip_norm = 4};
    default: return {.kind = core::OptimizerKind::momentum, .lr = 0.02F, .momentum = 0.9F};
  }
}

}  // namespace troupe::explore
