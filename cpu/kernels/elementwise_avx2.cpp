#include "cpu/kernels/elementwise_loops.hpp"

namespace troupe::cpu {

constinit const Elementwise kElementwiseAvx2 = table("avx2", 4);

}  // namespace troupe::cpu
