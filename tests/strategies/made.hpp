/// Strategies made from a configuration.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "strategies/registry/registry.hpp"

namespace troupe::strategies {

inline core::Result<std::unique_ptr<Strategy>> try_make(const std::string& toml, const RunShape& shape = {.workers = 2},
                                                        const std::vector<std::string>& overrides = {}) {
  core::Schema schema;
  add_options(schema);
  auto config = core::Config::parse(schema, toml, "test.toml", overrides);
  if (!config) return tl::unexpected(config.error());
  return make(*config, shape);
}

/// For configurations without errors.
inline std::unique_ptr<Strategy> made(const std::string& toml, const RunShape& shape = {.workers = 2}) {
  auto strategy = try_make(toml, shape);
  if (!strategy) throw std::logic_error(strategy.error().message);
  return std::move(*strategy);
}

}  // namespace troupe::strategies
