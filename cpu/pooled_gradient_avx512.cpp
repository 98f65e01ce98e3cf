// The inner loops of pooled_gradient.hpp, compiled for AVX-512. Everything but the entries has internal linkage, and nothing inline
// from elsewhere is called but intrinsics (see CMakeLists.txt).
#include <immintrin.h>

#include "cpu/pooled_gradient.hpp"

namespace troupe::cpu {
namespace {

constexpr std::int64_t kLanes = 16;

template <bool kWhole>
inline __m512 load_row(const float* from, int vector, int vectors, __mmask16 tail) {
  if (kWhole || vector + 1 < vectors) return _mm512_loadu_ps(from + kLanes * vector);
  return _mm512_maskz_loadu_ps(tail, from + kLanes * vector);
}

/// kSets: sums of every kSets-th winner, where one set would wait for its own additions. Loops are unrolled by order: otherwise the
/// sums go through the stack before and after.
template <int kRows, int kVectors, int kSets, bool kWhole>
void run(const Accumulation& a) {
  constexpr int kSums = kRows * kVectors;
  const auto tail = static_cast<__mmask16>((1u << a.tail) - 1u);
  const float* const base = a.from;
  const std::int64_t from_row = a.from_row;
  const std::int64_t to_row = a.to_row;
  float* const to = a.to;
  const Winner* winner = a.winners;
  const Winner* const end = winner + a.count;
  __m512 sums[kSets * kSums];
#pragma GCC unroll 32
  for (int i = 0; i < kSums; ++i) sums[i] = load_row<kWhole>(to + i / kVectors * to_row, i % kVectors, kVectors, tail);
#pragma GCC unroll 32
  for (int i = kSums; i < kSets * kSums; ++i) sums[i] = _mm512_setzero_ps();
  for (; winner + kSets <= end; winner += kSets) {
#pragma GCC unroll 32
    for (int i = 0; i < kSets * kSums; ++i) {
      const int in_set = i % kSums;
      const Winner& one = winner[i / kSums];
      const float* from = base + one.offset + in_set / kVectors * from_row;
      sums[i] = _mm512_fmadd_ps(_mm512_set1_ps(one.gradient),
                                load_row<kWhole>(from, in_set % kVectors, kVectors, tail), sums[i]);
    }
  }
  for (; kSets > 1 && winner < end; ++winner) {
#pragma GCC unroll 32
    for (int i = 0; i < kSums; ++i)
      sums[i] = _mm512_fmadd_ps(
          _mm512_set1_ps(winner->gradient),
          load_row<kWhole>(base + winner->offset + i / kVectors * from_row, i % kVectors, kVectors, tail), sums[i]);
  }
#pragma GCC unroll 32
  for (int i = 0; i < kSums; ++i) {
    __m512 sum = sums[i];
#pragma GCC unroll 32
    for (int s = 1; s < kSets; ++s) sum = _mm512_add_ps(sum, sums[s * kSums + i]);
    float* row = to + i / kVectors * to_row + kLanes * (i % kVectors);
    if (kWhole || i % kVectors + 1 < kVectors)
      _mm512_storeu_ps(row, sum);
    else
      _mm512_mask_storeu_ps(row, tail, sum);
  }
}

}  // namespace

Accumulate accumulate_winners(std::int64_t kernel, std::int64_t vectors) noexcept {
  if (kernel == 5 && vectors == 5) return run<5, 5, 1, true>;
  if (kernel == 3 && vectors == 3) return run<3, 3, 1, true>;
  if (kernel == 5 && vectors == 1) return run<5, 1, 4, false>;
  if (kernel == 3 && vectors == 1) return run<3, 1, 6, false>;
  return nullptr;
}

std::uint32_t read_winners(const float* dp, const float* pooled, const std::uint8_t* winners, float* gradients,
                           std::int32_t* places) noexcept {
  const __m512 gradient = _mm512_loadu_ps(dp);
  __mmask16 counts = _mm512_cmp_ps_mask(gradient, _mm512_setzero_ps(), _CMP_NEQ_UQ);  // NaN counts
  if (pooled != nullptr)
    counts &= _mm512_cmp_ps_mask(_mm512_loadu_ps(pooled), _mm512_setzero_ps(), _CMP_GT_OQ);
  _mm512_storeu_ps(gradients, _mm512_maskz_mov_ps(counts, gradient));
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(winners));
  _mm512_storeu_si512(places, _mm512_maskz_cvtepu8_epi32(0xffff, bytes));
  return counts;
}

}  // namespace troupe::cpu
