#include "strategies/diloco.hpp"

namespace troupe::strategies {

StrategyInfo diloco() {
  static const auto table = local_sgd_table({.tau = 32, .outer = "nesterov"});
  return {
      .name = "diloco",
      .summary = "local SGD with long local phases and outer Nesterov momentum",
      .add_options = [](core::Schema& schema) { schema.add(table, "diloco"); },
      .make = [](const core::Config& config,
                 const RunShape& shape) { return make_local_sgd(config, config.get(table), shape); },
      .option_space = local_sgd_rounds,
      .properties = [](const core::Config& config, const RunShape&) { return local_sgd_properties(config.get(table)); },
      .rate_share = [](const core::Config& config, const RunShape&) { return local_sgd_share(config.get(table)); },
      .replayable_options = local_sgd_replayable_options()};
}

}  // namespace troupe::strategies
