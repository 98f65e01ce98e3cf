// The inner loops of pooled_gradient.hpp, compiled for AVX-512. Everything but the entry functions has internal linkage, and the
// only inline functions called from elsewhere are intrinsics (see CMakeLists.txt).
#include <immintrin.h>

#include "cpu/kernels/pooled_gradient.hpp"

namespace troupe::cpu {
namespace {

constexpr std::int64_t kLanes = 16;

template <bool kWhole>
inline __m512 load_row(const float* from, int vector, int vectors, __mmask16 tail) {
  if (kWhole || vector + 1 < vectors) return _mm512_loadu_ps(from + kLanes * vector);
  return _mm512_maskz_loadu_ps(tail, from + kLanes * vector);
}

/// kSets sets of sums, each of every kSets-th winner: additions to one set would wait for each other. Loops are unrolled
/// explicitly; otherwise the sums go through the stack before and after.
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
      sums[i] = _mm512_fmadd_ps(_mm512_set1_ps(one.gradient), load_row<kWhole>(from, in_set % kVectors, kVectors, tail),
                                sums[i]);
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

struct Read {
  __m512 gradients;  // 0 for gradients that do not count
  __m512i places;
  __mmask16 count;
};

inline Read read_block(const PooledBlock& block) {
  const __m512 gradients = _mm512_loadu_ps(block.gradients);
  __mmask16 count = _mm512_cmp_ps_mask(gradients, _mm512_setzero_ps(), _CMP_NEQ_UQ);  // NaN counts
  if (block.outputs != nullptr)
    count = static_cast<__mmask16>(count &
                                   _mm512_cmp_ps_mask(_mm512_loadu_ps(block.outputs), _mm512_setzero_ps(), _CMP_GT_OQ));
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block.winners));
  return {_mm512_maskz_mov_ps(count, gradients), _mm512_maskz_cvtepu8_epi32(0xffff, bytes), count};
}

}  // namespace

Accumulate accumulate_winners(std::int64_t kernel, std::int64_t vectors) noexcept {
  if (kernel == 5 && vectors == 5) return run<5, 5, 1, true>;
  if (kernel == 3 && vectors == 3) return run<3, 3, 1, true>;
  if (kernel == 5 && vectors == 1) return run<5, 1, 4, false>;
  if (kernel == 3 && vectors == 1) return run<3, 1, 6, false>;
  return nullptr;
}

void append_winners(const PooledBlock& block, const std::int32_t (&offsets)[4], Winner** next, float* sums) noexcept {
  const Read read = read_block(block);
  const __m512i table =
      _mm512_maskz_broadcast_i32x4(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(offsets)));
  alignas(64) float gradients[kLanes];
  alignas(64) std::int32_t at[kLanes];
  _mm512_store_ps(gradients, read.gradients);
  _mm512_store_si512(at, _mm512_permutex2var_epi32(table, read.places, table));
  _mm512_storeu_ps(sums, _mm512_add_ps(_mm512_loadu_ps(sums), read.gradients));
  // No branch: the next entry overwrites one that does not count.
  for (std::int64_t o = 0; o < kLanes; ++o) {
    *next[o] = {gradients[o], at[o]};
    next[o] += (read.count >> o) & 1u;
  }
}

void sort_winners(const PooledBlock& block, std::int32_t stride, SortedWinners& sorted) noexcept {
  const Read read = read_block(block);
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i offset = _mm512_mullo_epi32(lane, _mm512_set1_epi32(stride));
  const __m512i gradient = _mm512_castps_si512(read.gradients);
  // Puts each gradient beside its offset: outputs 0 to 7, and 8 to 15.
  const __m512i low_order = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i low = _mm512_permutex2var_epi32(gradient, low_order, offset);
  const __m512i high = _mm512_permutex2var_epi32(gradient, _mm512_add_epi32(low_order, _mm512_set1_epi32(8)), offset);
  Winner* next = sorted.winners;
  for (std::int32_t place = 0; place < 4; ++place) {
    const std::uint32_t here = _mm512_mask_cmpeq_epi32_mask(read.count, read.places, _mm512_set1_epi32(place));
    const std::uint32_t first = here & 0xffu;
    const std::uint32_t second = here >> 8u;
    _mm512_storeu_si512(next, _mm512_maskz_compress_epi64(static_cast<__mmask8>(first), low));
    next += __builtin_popcount(first);
    _mm512_storeu_si512(next, _mm512_maskz_compress_epi64(static_cast<__mmask8>(second), high));
    next += __builtin_popcount(second);
    sorted.counts[place] = __builtin_popcount(here);
  }
}

}  // namespace troupe::cpu
