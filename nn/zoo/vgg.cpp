#include "nn/zoo/network.hpp"

namespace troupe::nn {
namespace {

/// `convolutions` 3x3 convolutions in each of five stages, then three fully connected layers.
Network vgg(const NetworkOptions& from, const std::vector<int>& convolutions) {
  const ActivationLayer relu = from.activation_or(Activation::relu);
  const std::vector<std::int64_t> channels{64, 128, 256, 512, 512};
  Network net;
  int index = 0;  // in torchvision's list of layers, which counts activations and poolings
  for (std::size_t stage = 0; stage < channels.size(); ++stage) {
    for (int i = 0; i < convolutions[stage]; ++i) {
      net.add("features." + std::to_string(index), Conv2dLayer{channels[stage], 3, 1, 1, from.weight});
      net.add("", relu);
      index += 2;
    }
    net.add("", PoolLayer{PoolKind::max, 2, 2, 0});
    ++index;
  }
  net.add("", AdaptiveAveragePoolLayer{7});
  for (const char* name : {"classifier.0", "classifier.3"}) {
    net.add(name, LinearLayer{4096, from.weight});
    net.add("", relu);
    net.add("", DropoutLayer{0.5});
  }
  net.add("classifier.6", LinearLayer{from.outputs, from.weight});
  return net;
}

}  // namespace

Network vgg16(const NetworkOptions& from) { return vgg(from, {2, 2, 3, 3, 3}); }
Network vgg19(const NetworkOptions& from) { return vgg(from, {2, 2, 4, 4, 4}); }

}  // namespace troupe::nn
