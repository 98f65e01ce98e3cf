/// Draws histories. The same seed draws the same history, on every machine. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/histories/history.hpp"

namespace troupe::histories {

/// The history of this seed.
[[nodiscard]] History generate(std::uint64_t seed);

/// `count` seeds whose histories together have every strategy and everything that can happen, as far as so few can: each is the one that
/// adds most to those before it.
[[nodiscard]] std::vector<std::uint64_t> telling_seeds(std::size_t count);

}  // namespace troupe::histories
