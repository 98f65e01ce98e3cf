#include "core/half.hpp"

#include <bit>

namespace troupe::core {
namespace {

constexpr std::uint32_t kInfinity = 0x7f800000;

std::uint16_t to_bf16(std::uint32_t bits) noexcept {
  constexpr std::uint32_t kQuiet = 0x40;
  if ((bits & 0x7fffffff) > kInfinity) return static_cast<std::uint16_t>(bits >> 16 | kQuiet);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

std::uint16_t to_fp16(std::uint32_t bits) noexcept {
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const std::uint32_t size = bits & 0x7fffffff;
  const auto with_sign = [sign](std::uint32_t half) { return static_cast<std::uint16_t>(sign | half); };
  if (size > kInfinity) return with_sign(0x7e00);
  if (size >= std::bit_cast<std::uint32_t>(65536.0f)) return with_sign(0x7c00);
  if (size < std::bit_cast<std::uint32_t>(0x1p-14f)) {
    // In units of 2^-24, the smallest subnormal; adding 2^23 rounds to whole ones.
    const float units = std::bit_cast<float>(size) * 0x1p24f + 0x1p23f;
    return with_sign(std::bit_cast<std::uint32_t>(units) - std::bit_cast<std::uint32_t>(0x1p23f));
  }
  constexpr std::uint32_t kBias = (127 - 15) << 23;
  return with_sign((size - kBias + 0xfff + (size >> 13 & 1)) >>
                   13);  // a carry into the exponent is correct, up to infinity
}

float from_fp16(std::uint16_t half) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1f;
  const std::uint32_t fraction = half & 0x3ff;
  if (exponent == 0) {
    const float size = static_cast<float>(fraction) * 0x1p-24f;
    return sign == 0 ? size : -size;
  }
  const std::uint32_t wide = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

}  // namespace

std::uint16_t to_half(float value, HalfKind kind) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return kind == HalfKind::bf16 ? to_bf16(bits) : to_fp16(bits);
}

float from_half(std::uint16_t half, HalfKind kind) noexcept {
  return kind == HalfKind::bf16 ? std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16) : from_fp16(half);
}

}  // namespace troupe::core
