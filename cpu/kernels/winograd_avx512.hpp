/// Tiles of Winograd's algorithm in AVX-512 registers, for winograd_avx512.cpp and winograd_gradient_avx512.cpp only: everything has internal
/// linkage. A vector holds 16 channels of one pixel, in float32.
#pragma once

#include <immintrin.h>

#include "cpu/kernels/winograd.hpp"

namespace troupe::cpu {
namespace {

constexpr std::int64_t kLanes = 16;
constexpr int kSide = 4;        // of a tile's inputs
constexpr int kPositions = 16;  // of a transformed tile

inline __m512 widened(const std::uint16_t* from) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

inline __m256i narrowed(__m512 value) { return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value)); }

/// Where a tile is: image, and the first of its outputs.
struct Position {
  std::int64_t image;
  std::int64_t y;
  std::int64_t x;
};

class Positions {
 public:
  Positions(const ConvolutionShape& shape, std::int64_t first)
      : columns_((shape.out_width + 1) / 2), rows_((shape.out_height + 1) / 2) {
    const std::int64_t row = first / columns_;
    at_ = {row / rows_, row % rows_ * 2, first % columns_ * 2};
  }
  [[nodiscard]] const Position& at() const { return at_; }
  void next() {
    at_.x += 2;
    if (at_.x < 2 * columns_) return;
    at_.x = 0;
    at_.y += 2;
    if (at_.y < 2 * rows_) return;
    at_.y = 0;
    ++at_.image;
  }

 private:
  std::int64_t columns_;
  std::int64_t rows_;
  Position at_{};
};

/// out ← Bᵀ in of four vectors.
inline void transform_inputs(const __m512& a, const __m512& b, const __m512& c, const __m512& d, __m512* out,
                             int stride) {
  out[0] = _mm512_sub_ps(a, c);
  out[stride] = _mm512_add_ps(b, c);
  out[2 * stride] = _mm512_sub_ps(c, b);
  out[3 * stride] = _mm512_sub_ps(b, d);
}

/// 16 channels of one tile: v[position] ← Bᵀ d B.
inline void transform_tile(const ConvolutionShape& shape, const std::uint16_t* image, const Position& at, __m512* v) {
  const std::int64_t top = at.y - shape.padding;
  const std::int64_t left = at.x - shape.padding;
  __m512 d[kPositions];
  if (top >= 0 && left >= 0 && top + kSide <= shape.height && left + kSide <= shape.width) {
    const std::uint16_t* from = image + (top * shape.width + left) * kLanes;
    for (int i = 0; i < kSide; ++i, from += shape.width * kLanes)
      for (int j = 0; j < kSide; ++j) d[i * kSide + j] = widened(from + j * kLanes);
  } else {
    for (int i = 0; i < kSide; ++i)
      for (int j = 0; j < kSide; ++j) {
        const bool inside = top + i >= 0 && top + i < shape.height && left + j >= 0 && left + j < shape.width;
        d[i * kSide + j] =
            inside ? widened(image + ((top + i) * shape.width + left + j) * kLanes) : _mm512_setzero_ps();
      }
  }
  __m512 rows[kPositions];
  for (int j = 0; j < kSide; ++j)
    transform_inputs(d[j], d[kSide + j], d[2 * kSide + j], d[3 * kSide + j], rows + j, kSide);
  for (int i = 0; i < kSide; ++i) {
    const __m512* row = rows + i * kSide;
    transform_inputs(row[0], row[1], row[2], row[3], v + i * kSide, 1);
  }
}

/// 32 halves: those of `even` and `odd` in turn.
inline __m512i in_turn(__m512 even, __m512 odd) {
  const __m512i low = _mm512_cvtepu16_epi32(narrowed(even));
  const __m512i high = _mm512_cvtepu16_epi32(narrowed(odd));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

}  // namespace
}  // namespace troupe::cpu
