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
