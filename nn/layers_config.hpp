/// `model.layers`: layers written in a config file, e.g. {type = "conv2d", outputs = 20, kernel = 5}. Thread rule: pure function.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config.hpp"
#include "core/error.hpp"
#include "nn/graph.hpp"
#include "nn/layer_types.hpp"

namespace troupe::nn {

/// Where a key of the configuration was set: "a.toml:7" for "model.layers[2]", as core::Config::where(). Null: errors name no place.
using Where = std::function<std::string(const std::string& key)>;

/// "a.toml:7: text", or the text alone where nothing set the key.
[[nodiscard]] std::string placed(const Where& where, const std::string& key, const std::string& text);

/// The layers of a list of tables.
struct LayerList {
  std::vector<NodeSpec> nodes;  // all have names
  std::vector<AuxiliaryLoss> auxiliary;
  GraphPlaces places;  // one for each node
};

/// Reads a list of tables. layer_types() says which types there are. Every layer may also have
///   name             how later layers, errors and checkpoints call it
///   inputs           names of earlier layers, or "input", the model's input; without it a layer takes the output of the one before
///   auxiliary_loss   a weight: its outputs get a loss of their own (AuxiliaryLoss)
/// A table {repeat = 3, name = "block", layers = […]} is its layers three times, called "block.0.conv1", "block.1.conv1", … (without
/// repeat once: "block.conv1"). In it "input" is what the block takes, names are looked up from the inside out, and the block's output
/// is its last layer's. `weight` is the initialiser of layers without their own. Errc::config names place and layer
/// ("a.toml:7: model.layers[2] (pool)", from 0), the value, and for an unknown word the nearest known one. Graph checks whether layers
/// fit each other.
[[nodiscard]] core::Result<LayerList> parse_layers(const core::Structure& layers, const Initialiser& weight,
                                                   const Where& where = nullptr);

}  // namespace troupe::nn
