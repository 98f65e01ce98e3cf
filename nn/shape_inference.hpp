/// Shapes of layers: what a layer makes of its inputs, and the parameters that it needs for them. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nn/graph.hpp"

namespace troupe::nn {

/// Why shapes do not fit; none: they do.
using Problem = std::optional<std::string>;

struct InferredLayer {
  Shape output;
  std::vector<std::int64_t> weight;  // canonical shape; empty: the layer has no parameters
  Initialiser weight_initialiser;
  bool bias = true;  // of layers with a weight: as long as its first extent
  std::int64_t fan_in = 0;
  std::int64_t fan_out = 0;
  bool statistics = false;  // a running mean and variance per channel
};

/// Fills `result` for a layer with these inputs, at least one. All layers but add and concat take exactly one.
[[nodiscard]] Problem infer(const Layer& layer, std::span<const Shape> inputs, InferredLayer& result);

/// Whether the shape has positive extents and few enough values that products of sizes do not overflow.
[[nodiscard]] bool is_bounded(const Shape& shape);

}  // namespace troupe::nn
