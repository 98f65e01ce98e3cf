/// 16-bit floats: what tensors are rounded to on a wire (exchange.wire). Arithmetic stays in float32. Pure.
#pragma once

#include <cstdint>
#include <span>

namespace troupe::core {

/// What a wire of 16 bits rounds of a vector that goes somewhere and comes back. The rule: differences only (gradients, sums of steps,
/// what somebody adds to a vector), and copies of a master that stays where it is. A float32 master that is rounded itself loses every
/// step that is smaller than the rounding: 2⁻⁹ of a parameter in bf16.
enum class Rounding : std::uint8_t {
  both,    ///< there and back
  answer,  ///< what goes is a master, and what comes back a difference
  change,  ///< what goes is a master, and it comes back: rounded is its change, which is added to the master that stayed here
  none,
};

enum class HalfKind : std::uint8_t {
  fp16,  ///< IEEE 754 binary16: 11 significant bits, up to 65,504, down to 2^-24
  bf16,  ///< the upper half of a float32: 8 significant bits, its whole range
};

/// What is larger becomes an infinity.
inline constexpr float kLargestFp16 = 65504;
inline constexpr float kLargestBf16 = 0x1.FEp127F;

using HalfSpan = std::span<std::uint16_t>;
using ConstHalfSpan = std::span<const std::uint16_t>;

/// Rounds to the nearest, ties to even; beyond the range gives an infinity, NaN stays NaN (its payload need not).
[[nodiscard]] std::uint16_t to_half(float value, HalfKind kind) noexcept;
/// Exact.
[[nodiscard]] float from_half(std::uint16_t half, HalfKind kind) noexcept;

}  // namespace troupe::core
