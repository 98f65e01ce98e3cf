#include "strategies/eamsgd.hpp"

#include <fmt/format.h>

namespace troupe::strategies {

StrategyInfo eamsgd() {
  static const auto table = easgd_table({});
  static constexpr auto kOptimizer = core::OptimizerKind::nesterov;
  return {.name = "eamsgd",
          .summary = "elastic averaging around local steps with Nesterov momentum",
          .add_options = [](core::Schema& schema) { schema.add(table, "eamsgd"); },
          .make = [](const core::Config& config, const RunShape& shape) -> core::Result<std::unique_ptr<Strategy>> {
            if (shape.optimizer.kind != kOptimizer) {
              return core::fail(core::Errc::config,
                                fmt::format("{}: strategy.name = \"eamsgd\" is elastic averaging with Nesterov steps: "
                                            "set train.optimizer = \"{}\", or take \"easgd\"",
                                            config.where("strategy.name"), core::optimizer_info(kOptimizer).name));
            }
            return make_easgd(config, config.get(table), shape, Gradient::at_lookahead);
          },
          .option_space = easgd_space,
          .properties = [](const core::Config& config,
                           const RunShape& shape) { return easgd_properties(config.get(table), shape); },
          .local_optimizer = kOptimizer,
          .replayable_options = easgd_replayable_options()};
}

}  // namespace troupe::strategies
