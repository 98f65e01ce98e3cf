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
