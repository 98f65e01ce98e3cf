/// Layers forward and backward in double: the loops behind ReferenceModel. One sample at a time where samples do not meet, vectors
/// row-major [channels, height, width]; batch normalisation in reference_batch_norm.hpp. Backward functions add to weight
/// gradients and write input gradients.
#pragma once

#include <span>

#include "nn/graph.hpp"

namespace troupe::nn::reference {

using In = std::span<const double>;
using Out = std::span<double>;

/// Everything a layer sees for one sample.
struct Site {
  Shape input;
  Shape output;
  In weight;  // canonical; empty without parameters
  In bias;    // empty without one
  In mask;    // of dropout; empty: identity
};

/// y = layer(x). Not for BatchNormLayer (std::logic_error).
void forward(const Layer& layer, const Site& site, In x, Out y);

/// dx = ∂loss/∂x from dy = ∂loss/∂y; dweight and dbias are added to.
void backward(const Layer& layer, const Site& site, In x, In y, In dy, Out dx, Out dweight, Out dbias);

/// The loss of one sample, and dz = ∂loss/∂z for outputs z.
double loss_and_gradient(Loss loss, In z, std::int64_t label, Out dz);

}  // namespace troupe::nn::reference
