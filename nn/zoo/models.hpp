/// Section [model] and the models that come with Troupe. Thread rule: plain values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "core/error.hpp"
#include "nn/graph.hpp"
#include "nn/layers_config.hpp"

namespace troupe::nn {

/// `name` chooses a model of the zoo; with `layers` it is only a label.
struct ModelConfig {
  std::string name;
  std::vector<std::int64_t> widths{100, 100};  // hidden layers of mlp
  std::string activation = "auto";
  std::string loss = "softmax_cross_entropy";
  std::int64_t classes = 0;  // outputs; 0: the number of classes of the data
  std::string initialiser = "auto";
  double init_scale = 0.01;
  bool zero_init_residual = false;
  core::Structure layers;                 // nn/layers_config.hpp
  std::vector<std::string> command{};     // of a program that computes the model (guest/); empty: Troupe computes it
  std::vector<std::string> tensors{};     // of that program, as it told them: "fc1.weight 128x64"
  std::vector<std::string> statistics{};  // the same: running statistics, which are averaged
  std::string program{};                  // the program's fingerprint; empty: not known
  double start_s = 120;                   // seconds: longest time from the program's start to its call of run.batches
  double silence_s = 600;                 // seconds: longest time of one answer
  std::string parallel = "none";
  bool overlap = true;
};
[[nodiscard]] const core::Table<ModelConfig>& model_table();

/// One model of the zoo with its defaults.
struct ZooEntry {
  std::string name;
  Shape input;  // the input for which `parameters` holds; build_model takes other shapes that fit
  std::int64_t classes = 0;
  std::int64_t parameters = 0;
  std::string description;
};
[[nodiscard]] const std::vector<ZooEntry>& model_zoo();

/// The model of this name, for the entry's input and classes. Errors as build_model().
[[nodiscard]] core::Result<Graph> zoo_model(const std::string& name);

/// The part of an optimizer's usual learning rate with which steps along the gradient train the model: what `train.lr = "auto"` takes.
/// A model of the zoo names it; a model of your own has the cautious share of the deep ones.
[[nodiscard]] double rate_share(const ModelConfig& config);

/// The model for samples of shape `input` in `classes` classes.
///   mlp    fully connected: input, `widths` with `activation` (sigmoid), classes. The outputs are sigmoids too with squared_error
///          (the Blue Gene model), and plain with softmax_cross_entropy.
///   lenet  conv 5x5-20, max pool 2, conv 5x5-50, max pool 2, fc 500, `activation` (relu), classes (LeCun et al. 1998 in the form of
///          today's frameworks: 431,080 parameters for 1x28x28 and 10 classes).
///   cifar  conv 5x5-64, max pool 2, conv 5x5-128, max pool 2, conv 3x3-64, fc 256, dropout 0.5, classes; no padding, `activation`
///          (relu) after convolutions and fc 256, initialiser he (351,946 parameters for 3x28x28 and 10 classes).
/// Errc::config: an unknown name (with the nearest), a shape that does not fit, fewer outputs than `classes`; it begins with the place
/// that `where` gives.
[[nodiscard]] core::Result<Graph> build_model(const ModelConfig& config, Shape input, std::int64_t classes,
                                              const Where& where = nullptr);

}  // namespace troupe::nn
