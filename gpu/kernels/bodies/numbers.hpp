/// Elements in memory and in registers. Tensors are float, Bf16 or Fp16; arithmetic is in float. Conversions give the bits of core/half.hpp,
/// except payloads of NaN. Several neighbours move in one access of up to 16 bytes. Thread rule: pure functions.
#pragma once

#include <cstdint>

#include "gpu/kernels/portable.hpp"

namespace troupe::gpu {

struct Bf16 {
  std::uint16_t bits;
};
struct Fp16 {
  std::uint16_t bits;
};

[[nodiscard]] TROUPE_HOST_DEVICE constexpr float as_float(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
[[nodiscard]] TROUPE_HOST_DEVICE constexpr std::uint32_t bits_of(float value) {
  return __builtin_bit_cast(std::uint32_t, value);
}
inline constexpr std::uint32_t kInfinityBits = 0x7f800000;

[[nodiscard]] TROUPE_HOST_DEVICE constexpr bool is_finite(float value) {
  return (bits_of(value) & kInfinityBits) != kInfinityBits;
}
[[nodiscard]] TROUPE_HOST_DEVICE constexpr bool is_finite(double value) {
  constexpr std::uint64_t kExponent = 0x7ff0000000000000;
  return (__builtin_bit_cast(std::uint64_t, value) & kExponent) != kExponent;
}

[[nodiscard]] TROUPE_HOST_DEVICE inline float to_float(float value) { return value; }
[[nodiscard]] TROUPE_HOST_DEVICE inline float to_float(Bf16 half) { return as_float(std::uint32_t{half.bits} << 16); }
[[nodiscard]] TROUPE_HOST_DEVICE inline float to_float(Fp16 half) {
#ifdef __CUDA_ARCH__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half.bits));  // exact, as below
  return value;
#else
  const std::uint32_t sign = std::uint32_t{half.bits & 0x8000u} << 16;
  const std::uint32_t exponent = half.bits >> 10 & 0x1f;
  const std::uint32_t fraction = half.bits & 0x3ff;
  if (exponent == 0) return as_float(sign | bits_of(static_cast<float>(fraction) * 0x1p-24f));
  const std::uint32_t wide = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  return as_float(sign | wide << 23 | fraction << 13);
#endif
}

template <class T>
[[nodiscard]] TROUPE_HOST_DEVICE T rounded(float value);
template <>
[[nodiscard]] TROUPE_HOST_DEVICE inline float rounded<float>(float value) {
  return value;
}
template <>
[[nodiscard]] TROUPE_HOST_DEVICE inline Bf16 rounded<Bf16>(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t nan = bits >> 16 | 0x40;  // quiet
  const std::uint32_t even = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return {static_cast<std::uint16_t>((bits & 0x7fffffff) > kInfinityBits ? nan : even)};
}
template <>
[[nodiscard]] TROUPE_HOST_DEVICE inline Fp16 rounded<Fp16>(float value) {
#ifdef __CUDA_ARCH__
  Fp16 half;
  asm("cvt.rn.f16.f32 %0, %1;"
      : "=h"(half.bits)
      : "f"(value));  // nearest, ties to even, subnormals, infinity: as below
  return half;
#else
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = bits >> 16 & 0x8000;
  const std::uint32_t size = bits & 0x7fffffff;
  constexpr std::uint32_t kBias = (127 - 15) << 23;
  std::uint32_t half = 0;
  if (size > kInfinityBits)
    half = 0x7e00;
  else if (size >= bits_of(65536.0f))
    half = 0x7c00;
  else if (size < bits_of(0x1p-14f))  // in units of 2^-24: adding 2^23 rounds to whole ones
    half = bits_of(as_float(size) * 0x1p24f + 0x1p23f) - bits_of(0x1p23f);
  else
    half = (size - kBias + 0xfff + (size >> 13 & 1)) >> 13;  // a carry into the exponent is correct, up to infinity
  return {static_cast<std::uint16_t>(sign | half)};
#endif
}

/// Neighbours in registers.
template <int kCount>
struct Lanes {
  float v[kCount];
  [[nodiscard]] TROUPE_HOST_DEVICE float& operator[](int lane) { return v[lane]; }
  [[nodiscard]] TROUPE_HOST_DEVICE float operator[](int lane) const { return v[lane]; }
};

/// One access of memory. may_alias: it reads and writes elements of other types.
template <int kBytes>
struct alignas(kBytes) [[gnu::may_alias]] Words {
  std::uint32_t w[kBytes / 4];
};
inline constexpr int kWidestAccess = 16;

/// How many elements of T one widest access moves: lanes of a body that touches tensors of T (of several types: of the largest).
template <class T>
inline constexpr int kLanesOf = kWidestAccess / static_cast<int>(sizeof(T));

/// The bytes of one access when kCount elements of T move.
template <class T, int kCount>
inline constexpr int kAccess = smaller(kWidestAccess, kCount* static_cast<int>(sizeof(T)));

template <class T>
[[nodiscard]] TROUPE_HOST_DEVICE inline float lane_of(const std::uint32_t* words, int lane) {
  if constexpr (sizeof(T) == 4)
    return as_float(words[lane]);
  else
    return to_float(T{static_cast<std::uint16_t>(words[lane / 2] >> (16 * (lane % 2)))});
}

/// kCount neighbours as memory has them: what is fetched before it is used.
template <class T, int kCount>
struct Packed {
  static constexpr int kBytes = kAccess<T, kCount>;
  static constexpr int kEach = kBytes / static_cast<int>(sizeof(T));
  Words<kBytes> parts[kCount / kEach];
};
template <class T>
struct Packed<T, 1> {
  T value;
};

/// kCount neighbours. REQUIRES for kCount > 1: `from` is aligned to kAccess<T, kCount>.
template <int kCount, class T>
[[nodiscard]] TROUPE_HOST_DEVICE inline Packed<T, kCount> fetch(const T* from) {
  Packed<T, kCount> packed;
  if constexpr (kCount == 1) {
    packed.value = *from;
  } else {
    TROUPE_UNROLL
    for (int part = 0; part < kCount / packed.kEach; ++part)
      packed.parts[part] = reinterpret_cast<const Words<packed.kBytes>*>(from)[part];
  }
  return packed;
}
template <class T, int kCount>
[[nodiscard]] TROUPE_HOST_DEVICE inline Lanes<kCount> lanes_of(const Packed<T, kCount>& packed) {
  Lanes<kCount> lanes;
  if constexpr (kCount == 1) {
    lanes[0] = to_float(packed.value);
  } else {
    TROUPE_UNROLL
    for (int part = 0; part < kCount / packed.kEach; ++part) {
      TROUPE_UNROLL
      for (int lane = 0; lane < packed.kEach; ++lane)
        lanes[part * packed.kEach + lane] = lane_of<T>(packed.parts[part].w, lane);
    }
  }
  return lanes;
}
template <int kCount, class T>
[[nodiscard]] TROUPE_HOST_DEVICE inline Lanes<kCount> load(const T* from) {
  return lanes_of(fetch<kCount>(from));
}

/// The same, rounded to nearest even.
template <class T, int kCount>
TROUPE_HOST_DEVICE inline void store(T* to, const Lanes<kCount>& lanes) {
  if constexpr (kCount == 1) {
    *to = rounded<T>(lanes[0]);
  } else {
    constexpr int kBytes = kAccess<T, kCount>;
    constexpr int kEach = kBytes / static_cast<int>(sizeof(T));
    TROUPE_UNROLL
    for (int part = 0; part < kCount / kEach; ++part) {
      Words<kBytes> words;
      TROUPE_UNROLL
      for (int word = 0; word < kBytes / 4; ++word) {
        const float* at = lanes.v + part * kEach + word * (kEach * 4 / kBytes);
        if constexpr (sizeof(T) == 4)
          words.w[word] = bits_of(at[0]);
        else
          words.w[word] = rounded<T>(at[0]).bits | std::uint32_t{rounded<T>(at[1]).bits} << 16;
      }
      reinterpret_cast<Words<kBytes>*>(to)[part] = words;
    }
  }
}

/// Whether `pointer` allows a widest access; null does.
[[nodiscard]] inline bool is_aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % kWidestAccess == 0;
}
template <class... Pointers>
[[nodiscard]] bool are_aligned(const Pointers*... pointers) {
  return (is_aligned(pointers) && ...);
}

}  // namespace troupe::gpu
