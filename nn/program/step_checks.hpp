/// What a step and an update need of their caller. Broken preconditions are bugs: std::invalid_argument. Thread rule: pure.
#pragma once

#include <cstdint>

#include "nn/backend.hpp"

namespace troupe::nn {

/// The batch has images for `samples` samples of `sample_floats` floats, and `labels` labels.
void check_batch(const Batch& batch, std::int64_t samples, std::int64_t sample_floats, std::int64_t labels);

/// The same for a batch of bytes: `samples` samples of `sample_bytes` bytes, with a cut each.
void check_byte_batch(const Batch& batch, std::int64_t samples, std::int64_t sample_bytes, std::int64_t labels);

/// The state of an optimizer for `floats` parameters: its vectors have that length; those that its kind does not have are dropped.
[[nodiscard]] core::OptimizerState checked_state(const core::OptimizerStep& step, core::OptimizerState state,
                                                 std::size_t floats);

}  // namespace troupe::nn
