#include "strategies/eamsgd.hpp"

namespace troupe::strategies {

StrategyInfo eamsgd() {
  static const auto table = easgd_table({});
  return {"eamsgd", "elastic averaging around local steps with Nesterov momentum",
          [](core::Schema& schema) { schema.add(table, "eamsgd"); },
          [](const core::Config& config, const RunShape& shape) -> core::Result<std::unique_ptr<Strategy>> {
            if (shape.optimizer.kind != core::OptimizerKind::nesterov) {
              return core::fail(core::Errc::config,
                                config.where("strategy.name") +
                                    ": strategy.name = \"eamsgd\" is elastic averaging with Nesterov "
                                    "steps: set train.optimizer = \"nesterov\", or take \"easgd\"");
            }
            return make_easgd(config, config.get(table), shape, Gradient::at_lookahead);
          }};
}

}  // namespace troupe::strategies
