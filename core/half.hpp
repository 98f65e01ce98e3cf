/// 16-bit floats: what tensors are rounded to on a wire (exchange.wire). Arithmetic stays in float32. Pure.
#pragma once

#include <cstdint>
#include <span>

namespace troupe::core {

enum class HalfKind : std::uint8_t {
  fp16,  ///< IEEE 754 binary16: 11 significant bits, up to 65,504, down to 2^-24
  bf16,  ///< the upper half of a float32: 8 significant bits, its whole range
};

using HalfSpan = std::span<std::uint16_t>;
using ConstHalfSpan = std::span<const std::uint16_t>;

/// Rounds to the nearest, ties to even; beyond the range gives an infinity, NaN stays NaN (its payload need not).
[[nodiscard]] std::uint16_t to_half(float value, HalfKind kind) noexcept;
/// Exact.
[[nodiscard]] float from_half(std::uint16_t half, HalfKind kind) noexcept;

}  // namespace troupe::core
