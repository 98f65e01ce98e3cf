/// Layers forward and backward in double precision: the loops behind ReferenceModel. They take one sample at a time; vectors are
/// row-major [channels, height, width]. Batch normalisation is in reference_batch_norm.hpp. Backward functions add to weight
/// gradients and overwrite input gradients.
#pragma once

#include <span>

#include "nn/graph.hpp"

namespace troupe::nn::reference {

using In = std::span<const double>;
using Out = std::span<double>;

/// The inputs of a layer for one sample.
struct LayerContext {
  Shape input;
  Shape output;
  In weight;  // canonical; empty without parameters
  In bias;    // empty without a bias
  In mask;    // of dropout; empty: identity
};

/// y = layer(x). Not for BatchNormLayer (std::logic_error).
void forward(const Layer& layer, const LayerContext& context, In x, Out y);

/// dx = ∂loss/∂x from dy = ∂loss/∂y; adds to dweight and dbias.
void backward(const Layer& layer, const LayerContext& context, In x, In y, In dy, Out dx, Out dweight, Out dbias);

/// The loss of one sample, and dz = ∂loss/∂z for outputs z.
double loss_and_gradient(Loss loss, In z, std::int64_t label, Out dz, double smoothing = 0);

}  // namespace troupe::nn::reference
