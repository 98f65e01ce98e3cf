#include "cpu/kernels/elementwise_loops.hpp"

namespace troupe::cpu {

constinit const Elementwise kElementwiseGeneric = table("generic", 7);

}  // namespace troupe::cpu
