/// Compares results of float32 kernels with the same in double precision. Pure functions.
#pragma once

#include <cmath>
#include <string>

#include "sim/explore/world/invariant.hpp"

namespace troupe::explore {

/// Throws Violation when `value` differs from `expected` by more than float32 rounding on numbers of this `size` explains.
inline void expect_close(double value, double expected, double size, const char* what) {
  if (!(std::abs(value - expected) <= 2e-5 * (1 + std::abs(size))))
    throw Violation(std::string(what) + ": " + std::to_string(value) + " in place of " + std::to_string(expected));
}

/// Throws Violation when the centre changed in any bit.
inline void expect_unmoved(const ServerKernel& kernel) {
  if (checksum(kernel.center) != checksum(kernel.center_before))
    throw Violation("a push that was refused moved the centre");
}

}  // namespace troupe::explore
