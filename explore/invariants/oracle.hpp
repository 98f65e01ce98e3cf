/// Comparing what kernels in float32 made with the same in double precision. Pure functions.
#pragma once

#include <cmath>
#include <string>

#include "explore/memory.hpp"

namespace troupe::explore {

/// Violates when `value` is further from `expected` than float32 arithmetic on numbers of this `size` explains.
inline void expect_close(double value, double expected, double size, const char* what) {
  if (!(std::abs(value - expected) <= 2e-5 * (1 + std::abs(size))))
    throw Violation(std::string(what) + ": " + std::to_string(value) + " in place of " + std::to_string(expected));
}

}  // namespace troupe::explore
