/// `troupe simulate --explore N`: random and adversarial schedules over all strategies, with their invariants checked.
#pragma once

#include <cstdint>
#include <string>

#include "core/error.hpp"

namespace troupe::apps {

struct ExploreArguments {
  std::int64_t runs = 0;
  std::int64_t seed = -1;  // below 0: 1
  std::string strategy;    // empty: all strategies
  bool json = false;
};

/// Prints what was explored, or one line of JSON. Errc::internal (exit 70) when an invariant was violated: standard error then has the seed
/// that repeats it and the shortest schedule found that shows it.
[[nodiscard]] core::Result<void> run_explore(const ExploreArguments& arguments);

}  // namespace troupe::apps
