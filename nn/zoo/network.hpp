/// What a model of the zoo is made from, and the networks themselves. Thread rule: pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nn/graph.hpp"

namespace troupe::nn {

/// What a network needs of the section [model], checked.
struct NetworkOptions {
  std::vector<std::int64_t> widths;  // mlp
  std::string activation;            // "auto", "relu", …
  Loss loss = Loss::softmax_cross_entropy;
  std::int64_t outputs = 0;
  Initialiser weight;
  bool zero_init_residual = false;

  [[nodiscard]] ActivationLayer activation_or(Activation otherwise) const;
};

/// Nodes in the order in which they are added.
struct Network {
  std::vector<NodeSpec> nodes;
  std::vector<AuxiliaryLoss> auxiliary;

  /// Adds a node behind the one before, or behind `inputs`, and returns its name.
  std::string add(std::string name, Layer layer, std::vector<std::string> inputs = {});
};

// Names of parameters are those of torchvision for the networks that it has, otherwise those of the papers' own programs.
[[nodiscard]] Network alexnet(const NetworkOptions& from);        // two groups, LRN (Krizhevsky et al. 2012)
[[nodiscard]] Network alexnet_torch(const NetworkOptions& from);  // as torchvision has it (Krizhevsky 2014)
[[nodiscard]] Network vgg16(const NetworkOptions& from);          // Simonyan & Zisserman 2015, configuration D
[[nodiscard]] Network vgg19(const NetworkOptions& from);          // configuration E
[[nodiscard]] Network resnet18(const NetworkOptions& from);       // He et al. 2016
// With the stride in the 3x3 convolutions, as torchvision has it.
[[nodiscard]] Network resnet50(const NetworkOptions& from);
// Wide residual network for small images (Zagoruyko & Komodakis 2016).
[[nodiscard]] Network wrn_28_4(const NetworkOptions& from);
[[nodiscard]] Network googlenet(const NetworkOptions& from);  // LRN, two auxiliary losses x 0.3 (Szegedy et al. 2014)
[[nodiscard]] Network googlenet_torch(const NetworkOptions& from);  // with batch normalisation, as torchvision has it

}  // namespace troupe::nn
