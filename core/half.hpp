/// 16-bit floats, for tensors on a wire (exchange.wire). Arithmetic stays in float32. Pure functions.
#pragma once

#include <cstdint>
#include <span>

namespace troupe::core {

/// Which direction of an exchange a 16-bit wire rounds. The rule: it rounds only differences (gradients, sums of steps, a change
/// that is added to a vector) and copies of a master vector that itself stays in place. A float32 master that is rounded loses
/// every step that is smaller than the rounding: 2⁻⁹ of a parameter in bf16.
enum class Rounding : std::uint8_t {
  both,    ///< the vector on its way out and the answer
  answer,  ///< the vector that goes out is a master (not rounded); the answer is a difference
  change,  ///< a master goes out and comes back: its change is rounded and added to the master that stayed here
  none,
};

enum class HalfKind : std::uint8_t {
  fp16,  ///< IEEE 754 binary16: 11 significant bits, up to 65,504, down to 2^-24
  bf16,  ///< the upper 16 bits of a float32: 8 significant bits, its whole range
};

/// Larger magnitudes become infinite.
inline constexpr float kLargestFp16 = 65504;
inline constexpr float kLargestBf16 = 0x1.FEp127F;

using HalfSpan = std::span<std::uint16_t>;
using ConstHalfSpan = std::span<const std::uint16_t>;

/// Rounds to nearest, ties to even. Out of range gives an infinity. NaN stays NaN, but its payload may change.
[[nodiscard]] std::uint16_t to_half(float value, HalfKind kind) noexcept;
/// Exact.
[[nodiscard]] float from_half(std::uint16_t half, HalfKind kind) noexcept;

}  // namespace troupe::core
