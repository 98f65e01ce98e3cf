/// `model.layers`: layers written in a config file, e.g. {type = "conv2d", outputs = 20, kernel = 5}. Thread rule: pure function.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.hpp"
#include "core/error.hpp"
#include "nn/graph.hpp"

namespace troupe::nn {

/// Where a key of the configuration was set: "a.toml:7" for "model.layers[2]", as core::Config::where(). Null: errors name no place.
using Where = std::function<std::string(const std::string& key)>;

/// "a.toml:7: text", or the text alone where nothing set the key.
[[nodiscard]] std::string placed(const Where& where, const std::string& key, const std::string& text);

/// The layers of a list of tables; layer_types() says which there are. `weight` is the initialiser of layers without their own.
/// Errc::config names place and layer ("a.toml:7: model.layers[2] (pool)", from 0), the value, and for an unknown word the nearest known
/// one. Graph checks whether layers fit each other.
[[nodiscard]] core::Result<std::vector<Layer>> parse_layers(const core::Structure& layers, const Initialiser& weight,
                                                            const Where& where = nullptr);

/// What errors call the layers of a list that parse_layers() has accepted.
[[nodiscard]] GraphPlaces places_of(const core::Structure& layers, const Where& where);

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
