#include <immintrin.h>

#include "core/kernels_loops.hpp"

namespace troupe::core {
namespace {

struct Avx2 {
  static constexpr std::size_t kWidth = 8;
  __m256 value;

  static Avx2 load(const float* from) { return {_mm256_loadu_ps(from)}; }
  static Avx2 all(float value) { return {_mm256_set1_ps(value)}; }
  void store(float* to) const { _mm256_storeu_ps(to, value); }
  void stream(float* to) const { _mm256_stream_ps(to, value); }
  static void fence() { _mm_sfence(); }
  friend Avx2 operator+(Avx2 a, Avx2 b) { return {_mm256_add_ps(a.value, b.value)}; }
  friend Avx2 operator-(Avx2 a, Avx2 b) { return {_mm256_sub_ps(a.value, b.value)}; }
  friend Avx2 operator*(Avx2 a, Avx2 b) { return {_mm256_mul_ps(a.value, b.value)}; }
  friend Avx2 operator/(Avx2 a, Avx2 b) { return {_mm256_div_ps(a.value, b.value)}; }
  friend Avx2 min(Avx2 a, Avx2 b) { return {_mm256_min_ps(a.value, b.value)}; }
  friend Avx2 max(Avx2 a, Avx2 b) { return {_mm256_max_ps(a.value, b.value)}; }
  friend Avx2 sqrt(Avx2 a) { return {_mm256_sqrt_ps(a.value)}; }
  /// The larger magnitude, compared by bits: infinity is above all numbers, NaN above infinity.
  friend Avx2 larger(Avx2 magnitude, Avx2 a) {
    const __m256i bits = _mm256_and_si256(_mm256_castps_si256(a.value), _mm256_set1_epi32(0x7fffffff));
    return {_mm256_castsi256_ps(_mm256_max_epu32(_mm256_castps_si256(magnitude.value), bits))};
  }

  template <HalfKind kKind>
  void store_half(std::uint16_t* to) const {
    __m128i half;
    if constexpr (kKind == HalfKind::fp16) {
      half = _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    } else {
      const __m256i bits = _mm256_castps_si256(value);
      const __m256i upper = _mm256_srli_epi32(bits, 16);
      const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
      const __m256i carried = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
      const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
      const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
      const __m256i wide = _mm256_blendv_epi8(_mm256_srli_epi32(carried, 16), quiet, nan);
      // Packing works within each 128-bit lane of the register: this puts the two results side by side.
      const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(wide, wide), 0b1000);
      half = _mm256_castsi256_si128(packed);
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), half);
  }
  template <HalfKind kKind>
  static Avx2 load_half(const std::uint16_t* from) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    if constexpr (kKind == HalfKind::fp16) return {_mm256_cvtph_ps(half)};
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16))};
  }

  struct Double {
    static constexpr std::size_t kWidth = 4;
    __m256d value;
    static Double zero() { return {_mm256_setzero_pd()}; }
    void add_square(const float* from) {
      const __m256d wide = _mm256_cvtps_pd(_mm_loadu_ps(from));
      value = _mm256_add_pd(value, _mm256_mul_pd(wide, wide));
    }
    void store(double* to) const { _mm256_storeu_pd(to, value); }
  };
};

}  // namespace

constinit const HostLoops kAvx2Loops = Loops<Avx2>::table();

}  // namespace troupe::core
