/// `model.layers`: layers written in a config file, e.g. {type = "conv2d", outputs = 20, kernel = 5}. Thread rule: pure function.
#pragma once

#include <string_view>
#include <vector>

#include "core/config.hpp"
#include "core/error.hpp"
#include "nn/graph.hpp"

namespace troupe::nn {

/// Types and their keys (default in parentheses; required without one):
///   linear      outputs, initialiser, init_scale
///   conv2d      outputs, kernel, stride (1), padding (0), groups (1), bias (true), initialiser, init_scale
///   pool        kind ("max" or "average"; "max"), kernel (2), stride (kernel), padding (0)
///   dropout     rate (0.5)
///   batch_norm  epsilon (1e-5), momentum (0.1)
///   lrn         size (5), alpha (1e-4; divided by size), beta (0.75), k (1)
///   relu, sigmoid, tanh, flatten: no keys
/// `weight` is the initialiser of layers without their own. Errc::config names the layer ("model.layers[2]", from 0), the value,
/// and for an unknown word the nearest known one. Graph checks whether layers fit each other.
[[nodiscard]] core::Result<std::vector<Layer>> parse_layers(const core::Structure& layers, const Initialiser& weight);

/// The `type` of a layer in `model.layers`: "conv2d", "relu".
[[nodiscard]] std::string_view layer_type(const Layer& layer);

/// "normal", "uniform", "xavier" or "he"; Errc::config for anything else, naming `key`.
[[nodiscard]] core::Result<InitialiserKind> parse_initialiser(std::string_view name, std::string_view key);

/// The word of `known` nearest to `word`, for messages.
[[nodiscard]] std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace troupe::nn
