/// Preconditions of the host kernels, checked once per call: a violation is a bug of the caller and throws std::invalid_argument.
/// Also the summation order of the norm, which all implementations share. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <span>

#include "core/kernels.hpp"

namespace troupe::core {

/// squared_norm: float64 sums of chunks of this many floats, added in order. Within a chunk, element i goes to lane i mod
/// kNormLanes. Then lanes are added in pairs, 16 apart (0+16, 1+17, …), then 8 apart (0+8, …), down to 1.
inline constexpr std::size_t kNormChunk = 4096;
inline constexpr std::size_t kNormLanes = 32;

void check_equal_sizes(ConstSpan a, ConstSpan b);
void check_equal_sizes(ConstSpan a, ConstSpan b, ConstSpan c);
void check_equal_sizes(ConstSpan a, ConstHalfSpan b);
/// Also checks that there is at least one vector.
void check_equal_sizes(std::span<const Span> all);
void check_root(std::span<const Span> all, std::size_t root);
/// x and g have equal size, and so do the state vectors that the kind has.
void check_optimizer(ConstSpan x, ConstSpan g, const OptimizerState& state, const OptimizerStep& step);

/// A step's numbers in the form that the loops use. Adam's m̂ = first_scale · m, r̂ = second_scale · r.
struct StepNumbers {
  float lr;
  float momentum;
  float weight_decay;
  float decay;
  float epsilon;
  float first_scale;
  float second_scale;
};
[[nodiscard]] StepNumbers step_numbers(const OptimizerStep& step) noexcept;

}  // namespace troupe::core
