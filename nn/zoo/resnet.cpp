// Residual networks: a block adds what its convolutions make of its input to the input.
#include <fmt/format.h>

#include "nn/zoo/network.hpp"

namespace troupe::nn {
namespace {

class ResNet {
 public:
  explicit ResNet(const NetworkOptions& from) : from_(from), relu_(from.activation_or(Activation::relu)) {}

  Network build(const std::vector<int>& blocks, bool bottleneck) {
    conv("conv1", 64, 7, 2, "");
    net_.add("bn1", BatchNormLayer{});
    net_.add("", relu_);
    at_ = net_.add("maxpool", PoolLayer{PoolKind::max, 3, 2, 1});
    std::int64_t width = 64;
    for (std::size_t stage = 0; stage < blocks.size(); ++stage, width *= 2)
      for (int i = 0; i < blocks[stage]; ++i)
        block(fmt::format("layer{}.{}.", stage + 1, i), width, i == 0 && stage > 0 ? 2 : 1, i == 0, bottleneck);
    net_.add("", AdaptiveAveragePoolLayer{1});
    net_.add("fc", LinearLayer{from_.outputs, from_.weight});
    return std::move(net_);
  }

 private:
  void conv(const std::string& name, std::int64_t outputs, std::int64_t kernel, std::int64_t stride,
            const std::string& input) {
    const Conv2dLayer layer{outputs, kernel, stride, kernel / 2, from_.weight, 1, false};
    net_.add(name, layer, input.empty() ? std::vector<std::string>{} : std::vector{input});
  }

  void block(const std::string& name, std::int64_t width, std::int64_t stride, bool first, bool bottleneck) {
    const std::int64_t outputs = bottleneck ? 4 * width : width;
    const BatchNormLayer last{.initial_weight = from_.zero_init_residual ? 0.0 : 1.0};
    if (bottleneck) {
      conv(name + "conv1", width, 1, 1, at_);
      net_.add(name + "bn1", BatchNormLayer{});
      net_.add("", relu_);
      conv(name + "conv2", width, 3, stride, "");
      net_.add(name + "bn2", BatchNormLayer{});
      net_.add("", relu_);
      conv(name + "conv3", outputs, 1, 1, "");
    } else {
      conv(name + "conv1", width, 3, stride, at_);
      net_.add(name + "bn1", BatchNormLayer{});
      net_.add("", relu_);
      conv(name + "conv2", width, 3, 1, "");
    }
    const auto changed = net_.add(name + (bottleneck ? "bn3" : "bn2"), last);
    std::string kept = at_;
    if (first && (stride > 1 || bottleneck)) {  // other channels or pixels than the input
      conv(name + "downsample.0", outputs, 1, stride, at_);
      kept = net_.add(name + "downsample.1", BatchNormLayer{});
    }
    net_.add(name + "add", AddLayer{}, {changed, kept});
    at_ = net_.add(name + "relu", relu_);
  }

  const NetworkOptions& from_;
  ActivationLayer relu_;
  Network net_;
  std::string at_;  // the output of the block before
};

/// One block of a wide residual network: normalisation and activation come before each convolution.
std::string wide_block(Network& net, const NetworkOptions& from, const std::string& name, const std::string& input,
                       std::int64_t outputs, std::int64_t stride, bool first) {
  const ActivationLayer relu = from.activation_or(Activation::relu);
  net.add(name + "bn1", BatchNormLayer{}, {input});
  const auto activated = net.add(name + "relu1", relu);
  net.add(name + "conv1", Conv2dLayer{outputs, 3, stride, 1, from.weight, 1, false});
  net.add(name + "bn2", BatchNormLayer{});
  net.add(name + "relu2", relu);
  const auto changed = net.add(name + "conv2", Conv2dLayer{outputs, 3, 1, 1, from.weight, 1, false});
  std::string kept = input;
  if (first) kept = net.add(name + "shortcut", Conv2dLayer{outputs, 1, stride, 0, from.weight, 1, false}, {activated});
  return net.add(name + "add", AddLayer{}, {changed, kept});
}

}  // namespace

Network resnet18(const NetworkOptions& from) { return ResNet(from).build({2, 2, 2, 2}, false); }
Network resnet50(const NetworkOptions& from) { return ResNet(from).build({3, 4, 6, 3}, true); }

Network wrn_28_4(const NetworkOptions& from) {
  constexpr int kBlocks = (28 - 4) / 6;  // in each of three groups
  constexpr std::int64_t kWiden = 4;
  Network net;
  std::string at = net.add("conv1", Conv2dLayer{16, 3, 1, 1, from.weight, 1, false});
  std::int64_t width = 16 * kWiden;
  for (int group = 1; group <= 3; ++group, width *= 2)
    for (int i = 0; i < kBlocks; ++i)
      at = wide_block(net, from, fmt::format("block{}.{}.", group, i), at, width, group > 1 && i == 0 ? 2 : 1, i == 0);
  net.add("bn", BatchNormLayer{}, {at});
  net.add("", from.activation_or(Activation::relu));
  net.add("", AdaptiveAveragePoolLayer{1});
  net.add("fc", LinearLayer{from.outputs, from.weight});
  return net;
}

}  // namespace troupe::nn
