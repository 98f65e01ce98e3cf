/// Draws random histories. A seed gives the same history on every machine. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/histories/history.hpp"

namespace troupe::histories {

/// The history of this seed.
[[nodiscard]] History generate(std::uint64_t seed);

/// `count` seeds whose histories together cover every strategy and every kind of event, as far as `count` histories can. Greedy: each
/// seed adds most to those before it.
[[nodiscard]] std::vector<std::uint64_t> telling_seeds(std::size_t count);

}  // namespace troupe::histories
