/// Plans one buffer for all data between operations of a step: lifetimes in, offsets out. Thread rule: pure function.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace troupe::nn {

/// Memory in use from operation `first` to operation `last` of the step, both included.
struct Lifetime {
  std::size_t floats = 0;
  int first = 0;
  int last = 0;
};

struct Placement {
  std::vector<std::size_t> offsets;  // floats, one per lifetime; multiples of core::kAlignmentFloats
  std::size_t floats = 0;            // of the whole buffer
};

/// Places the largest first, each at the lowest offset that is free for its whole lifetime (Pisarchyk & Lee 2020, "Efficient memory
/// management for deep neural net inference"). Quadratic in the number of lifetimes. Deterministic.
[[nodiscard]] Placement place(std::span<const Lifetime> lifetimes);

}  // namespace troupe::nn
