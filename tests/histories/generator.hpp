/// Draws histories. The same seed draws the same history, on every machine. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/histories/history.hpp"

namespace troupe::histories {

/// What the generator leaves out, and why: a defect that is known and not mended yet.
struct Mask {
  std::string why;
  bool (*hides)(const History& history);
};
[[nodiscard]] const std::vector<Mask>& masks();

/// The history of this seed: the first of its draws that no mask hides.
[[nodiscard]] History generate(std::uint64_t seed);

}  // namespace troupe::histories
