#include "core/optimizers/optimizers.hpp"

#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::core {

const OptimizerInfo& optimizer_info(std::string_view name) {
  for (const auto& row : kOptimizers)
    if (row.name == name && !row.variant) return row;
  throw std::invalid_argument(
      fmt::format("no optimizer is called \"{}\": there are {}", name, fmt::join(optimizer_names(), ", ")));
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const auto& row : kOptimizers)
    if (!row.variant) names.emplace_back(row.name);
  return names;
}

std::vector<std::string> optimizer_names(bool OptimizerInfo::*property) {
  std::vector<std::string> names;
  for (const auto& row : kOptimizers)
    if (row.*property && !row.variant) names.emplace_back(row.name);
  return names;
}

}  // namespace troupe::core
