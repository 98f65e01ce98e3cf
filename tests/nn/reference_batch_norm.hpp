/// Batch normalisation in double precision, for ReferenceModel. Vectors are [batch, channels, height, width] of `shape`.
#pragma once

#include "tests/nn/reference_layers.hpp"

namespace troupe::nn::reference {

/// The mean and variance that normalise one batch, per channel.
struct Moments {
  std::vector<double> mean;
  std::vector<double> variance;  // Σ (x − mean)² / m
};
[[nodiscard]] Moments moments(const Shape& shape, In x);

/// y = weight · (x − mean) / sqrt(variance + epsilon) + bias
void batch_norm_forward(const BatchNormLayer& layer, const LayerContext& context, const Moments& moments, In x, Out y);

/// The gradients of batch_norm_forward. of_batch: the moments are those of x and depend on it; otherwise they are constants.
void batch_norm_backward(const BatchNormLayer& layer, const LayerContext& context, const Moments& moments,
                         bool of_batch, In x, In dy, Out dx, Out dweight, Out dbias);

}  // namespace troupe::nn::reference
