/// The types of layers that `model.layers` knows, with their keys. Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/error.hpp"
#include "nn/graph.hpp"

namespace troupe::nn {

/// The layer that `table` describes; its name, inputs and auxiliary_loss are not read here. Errc::config begins with `where`.
[[nodiscard]] core::Result<Layer> parse_layer(const nlohmann::json& table, const std::string& where,
                                              const Initialiser& weight);

struct LayerKey {
  std::string name;
  std::string otherwise;  // the value of a layer that does not set it; empty: it must
};
struct LayerType {
  std::string name;  // "conv2d"
  std::vector<LayerKey> keys;
};
/// Every type of layer with its keys, by name.
[[nodiscard]] const std::vector<LayerType>& layer_types();

/// The `type` of a layer in `model.layers`: "conv2d", "relu".
[[nodiscard]] std::string_view layer_type(const Layer& layer);

/// "normal", "uniform", "xavier" or "he"; Errc::config for anything else, naming `key`.
[[nodiscard]] core::Result<InitialiserKind> parse_initialiser(std::string_view name, std::string_view key);

}  // namespace troupe::nn
