#include "cpu/kernels/elementwise_loops.hpp"

namespace troupe::cpu {

constinit const Elementwise kElementwiseAvx512 = table("avx512", 6);

}  // namespace troupe::cpu
