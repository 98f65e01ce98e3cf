/// Draws histories. The same seed draws the same history, on every machine. Pure.
#pragma once

#include <cstdint>

#include "tests/histories/history.hpp"

namespace troupe::histories {

/// The history of this seed.
[[nodiscard]] History generate(std::uint64_t seed);

}  // namespace troupe::histories
