#include "nn/zoo/network.hpp"

namespace troupe::nn {

ActivationLayer NetworkOptions::activation_or(Activation otherwise) const {
  for (const auto kind : {Activation::relu, Activation::sigmoid, Activation::tanh})
    if (activation == to_string(kind)) return {kind};
  return {otherwise};  // "auto"
}

std::string Network::add(std::string name, Layer layer, std::vector<std::string> inputs) {
  nodes.push_back({std::move(layer), name, std::move(inputs)});
  return name;
}

}  // namespace troupe::nn
