/// Which units dropout keeps. One definition for all backends, so that the same lease drops the same units on every worker and
/// device. Thread rule: pure function.
#pragma once

#include <cstdint>

#include "core/kernels.hpp"

namespace troupe::nn {

/// out[i] = 1 / (1 − rate) if unit first_unit + i of node `node` under `lease` is kept, otherwise 0; multiply outputs and gradients by
/// it. Units are counted over the whole batch of the step in plain order: sample · (units per sample) + unit. Unit j is kept iff word j of
/// the stream
/// core::Random(seed, Purpose::dropout, (lease << 16) | node) is at least rate · 2^32. REQUIRES: 0 ≤ rate < 1, 0 ≤ node < 65536,
/// lease < 2^48. Cost: a quarter of a Philox block per unit.
void dropout_mask(std::uint64_t seed, std::uint64_t lease, int node, double rate, core::Span out,
                  std::uint64_t first_unit = 0) noexcept;

}  // namespace troupe::nn
