/// Losses and hit counts over one batch of outputs [rows, classes], with their gradients. Sums run over samples in order, in
/// double: the same for any number of threads. Stateless.
#pragma once

#include <cstdint>
#include <span>

#include "nn/backend.hpp"
#include "nn/graph.hpp"

namespace troupe::cpu {

/// Mean loss, top-1 and top-5 counts over the first `samples` rows of z [rows, classes]. gradient [rows, classes] becomes d(mean
/// over all rows)/dz; a caller that does not need it passes scratch. A NaN output ranks above the label's; an equal output does if
/// its class comes before the label. `smoothing` s, for cross-entropy: the target of the label's class is 1 − s + s / classes, that of
/// the others s / classes (Szegedy et al. 2016, as PyTorch's). A label outside the classes: Errc::data ("sample 3 of the batch …").
[[nodiscard]] core::Result<nn::StepResult> compute_loss(nn::Loss loss, const float* z,
                                                        std::span<const std::int32_t> labels, std::int64_t samples,
                                                        std::int64_t classes, float* gradient, double smoothing = 0);

}  // namespace troupe::cpu
