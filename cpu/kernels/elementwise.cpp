#include "cpu/kernels/elementwise.hpp"

namespace troupe::cpu {

std::vector<const Elementwise*> elementwise_variants() {
  std::vector<const Elementwise*> variants;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    variants.push_back(&kElementwiseAvx512);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) variants.push_back(&kElementwiseAvx2);
  variants.push_back(&kElementwiseGeneric);
  return variants;
}

const Elementwise& elementwise() noexcept {
  static const Elementwise& fastest = *elementwise_variants().front();
  return fastest;
}

}  // namespace troupe::cpu
