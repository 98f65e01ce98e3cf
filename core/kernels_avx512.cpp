#include <immintrin.h>

#include "core/kernels_loops.hpp"

namespace troupe::core {
namespace {

struct Avx512 {
  static constexpr std::size_t kWidth = 16;
  __m512 value;

  static Avx512 load(const float* from) { return {_mm512_loadu_ps(from)}; }
  static Avx512 all(float value) { return {_mm512_set1_ps(value)}; }
  void store(float* to) const { _mm512_storeu_ps(to, value); }
  void stream(float* to) const { _mm512_stream_ps(to, value); }
  static void fence() { _mm_sfence(); }
  friend Avx512 operator+(Avx512 a, Avx512 b) { return {_mm512_add_ps(a.value, b.value)}; }
  friend Avx512 operator-(Avx512 a, Avx512 b) { return {_mm512_sub_ps(a.value, b.value)}; }
  friend Avx512 operator*(Avx512 a, Avx512 b) { return {_mm512_mul_ps(a.value, b.value)}; }
  friend Avx512 operator/(Avx512 a, Avx512 b) { return {_mm512_div_ps(a.value, b.value)}; }
  friend Avx512 min(Avx512 a, Avx512 b) { return {_mm512_maskz_min_ps(0xffff, a.value, b.value)}; }
  friend Avx512 max(Avx512 a, Avx512 b) { return {_mm512_maskz_max_ps(0xffff, a.value, b.value)}; }
  friend Avx512 sqrt(Avx512 a) { return {_mm512_maskz_sqrt_ps(0xffff, a.value)}; }
  /// The larger magnitude, compared by bits: infinity is above all numbers, NaN above infinity.
  friend Avx512 larger(Avx512 magnitude, Avx512 a) {
    const __m512i bits = _mm512_and_si512(_mm512_castps_si512(a.value), _mm512_set1_epi32(0x7fffffff));
    return {_mm512_castsi512_ps(_mm512_maskz_max_epu32(0xffff, _mm512_castps_si512(magnitude.value), bits))};
  }

  template <HalfKind kKind>
  void store_half(std::uint16_t* to) const {
    __m256i half;
    if constexpr (kKind == HalfKind::fp16) {
      half = _mm512_maskz_cvtps_ph(0xffff, value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    } else {
      const __m512i bits = _mm512_castps_si512(value);
      const __m512i upper = _mm512_maskz_srli_epi32(0xffff, bits, 16);
      const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
      const __m512i carried = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
      const __m512i quiet = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
      const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
      half = _mm512_maskz_cvtepi32_epi16(
          0xffff, _mm512_mask_mov_epi32(_mm512_maskz_srli_epi32(0xffff, carried, 16), nan, quiet));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), half);
  }
  template <HalfKind kKind>
  static Avx512 load_half(const std::uint16_t* from) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    if constexpr (kKind == HalfKind::fp16) return {_mm512_maskz_cvtph_ps(0xffff, half)};
    return {_mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, half), 16))};
  }

  struct Double {
    static constexpr std::size_t kWidth = 8;
    __m512d value;
    static Double zero() { return {_mm512_setzero_pd()}; }
    void add_square(const float* from) {
      // The unmasked form starts from an undefined register, which GCC 12 reports as used uninitialised.
      const __m512d wide = _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(from));
      value = _mm512_add_pd(value, _mm512_mul_pd(wide, wide));
    }
    void store(double* to) const { _mm512_storeu_pd(to, value); }
  };
};

}  // namespace

constinit const HostLoops kAvx512Loops = Loops<Avx512>::table();

}  // namespace troupe::core
