#include "strategies/diloco.hpp"

namespace troupe::strategies {

StrategyInfo diloco() {
  static const auto table = local_sgd_table({.tau = 32, .outer = "nesterov"});
  return {"diloco", "local SGD with long local phases and outer Nesterov momentum",
          [](core::Schema& schema) { schema.add(table, "diloco"); },
          [](const core::Config& config, const RunShape& shape) {
            return make_local_sgd(config, config.get(table), shape);
          }};
}

}  // namespace troupe::strategies
