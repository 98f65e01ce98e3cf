// GoogLeNet: blocks of four branches whose channels stand side by side, and two auxiliary losses in the middle.
#include "nn/zoo/network.hpp"

namespace troupe::nn {
namespace {

constexpr double kAuxiliaryWeight = 0.3;

/// Channels of one block: 1x1 | 3x3 behind a 1x1 | 5x5 behind a 1x1 | 1x1 behind a pooling (table 1 of the paper).
struct Inception {
  const char* name;
  std::int64_t one, three_reduced, three, five_reduced, five, pooled;
};
constexpr Inception k3[]{{"3a", 64, 96, 128, 16, 32, 32}, {"3b", 128, 128, 192, 32, 96, 64}};
constexpr Inception k4[]{{"4a", 192, 96, 208, 16, 48, 64},
                         {"4b", 160, 112, 224, 24, 64, 64},
                         {"4c", 128, 128, 256, 24, 64, 64},
                         {"4d", 112, 144, 288, 32, 64, 64},
                         {"4e", 256, 160, 320, 32, 128, 128}};
constexpr Inception k5[]{{"5a", 256, 160, 320, 32, 128, 128}, {"5b", 384, 192, 384, 48, 128, 128}};

const PoolLayer kHalve{PoolKind::max, 3, 2, 0, true};
const PoolLayer kSame{PoolKind::max, 3, 1, 1, true};

class Paper {
 public:
  explicit Paper(const NetworkOptions& from) : from_(from), relu_(from.activation_or(Activation::relu)) {}

  Network build() {
    const LrnLayer lrn{.size = 5, .alpha = 1e-4, .beta = 0.75, .k = 1};
    conv("conv1", 64, 7, 2, {});
    net_.add("", kHalve);
    net_.add("", lrn);
    conv("conv2.reduce", 64, 1, 1, {});
    conv("conv2", 192, 3, 1, {});
    net_.add("", lrn);
    at_ = net_.add("pool2", kHalve);
    for (const auto& block : k3) inception(block);
    at_ = net_.add("pool3", kHalve);
    for (const auto& block : k4) {
      inception(block);
      if (&block == &k4[0]) auxiliary("loss1");
      if (&block == &k4[3]) auxiliary("loss2");
    }
    at_ = net_.add("pool4", kHalve, {at_});
    for (const auto& block : k5) inception(block);
    net_.add("", AdaptiveAveragePoolLayer{1});
    net_.add("", DropoutLayer{0.4});
    net_.add("fc", LinearLayer{from_.outputs, from_.weight});
    return std::move(net_);
  }

 private:
  std::string conv(const std::string& name, std::int64_t outputs, std::int64_t kernel, std::int64_t stride,
                   const std::vector<std::string>& inputs) {
    net_.add(name, Conv2dLayer{outputs, kernel, stride, kernel / 2, from_.weight}, inputs);
    return net_.add(name + ".relu", relu_);
  }

  void inception(const Inception& block) {
    const std::string name = std::string("inception") + block.name + ".";
    const auto one = conv(name + "conv1x1", block.one, 1, 1, {at_});
    conv(name + "reduce3x3", block.three_reduced, 1, 1, {at_});
    const auto three = conv(name + "conv3x3", block.three, 3, 1, {});
    conv(name + "reduce5x5", block.five_reduced, 1, 1, {at_});
    const auto five = conv(name + "conv5x5", block.five, 5, 1, {});
    net_.add(name + "pool", kSame, {at_});
    const auto pooled = conv(name + "pooled", block.pooled, 1, 1, {});
    at_ = net_.add(name + "concat", ConcatLayer{}, {one, three, five, pooled});
  }

  void auxiliary(const std::string& name) {
    net_.add(name + ".pool", PoolLayer{PoolKind::average, 5, 3, 0}, {at_});
    conv(name + ".conv", 128, 1, 1, {});
    net_.add(name + ".fc", LinearLayer{1024, from_.weight});
    net_.add(name + ".fc.relu", relu_);
    net_.add(name + ".dropout", DropoutLayer{0.7});
    net_.add(name + ".classifier", LinearLayer{from_.outputs, from_.weight});
    net_.auxiliary.push_back({name + ".classifier", kAuxiliaryWeight});
  }

  const NetworkOptions& from_;
  ActivationLayer relu_;
  Network net_;
  std::string at_;
};

/// torchvision's: batch normalisation instead of LRN, and 3x3 where the paper has 5x5.
class Torch {
 public:
  explicit Torch(const NetworkOptions& from) : from_(from), relu_(from.activation_or(Activation::relu)) {}

  Network build() {
    conv("conv1", 64, 7, 2, {});
    net_.add("", kHalve);
    conv("conv2", 64, 1, 1, {});
    conv("conv3", 192, 3, 1, {});
    at_ = net_.add("maxpool2", kHalve);
    for (const auto& block : k3) inception(block);
    at_ = net_.add("maxpool3", kHalve);
    for (const auto& block : k4) {
      inception(block);
      if (&block == &k4[0]) auxiliary("aux1");
      if (&block == &k4[3]) auxiliary("aux2");
    }
    at_ = net_.add("maxpool4", PoolLayer{PoolKind::max, 2, 2, 0, true}, {at_});
    for (const auto& block : k5) inception(block);
    net_.add("", AdaptiveAveragePoolLayer{1});
    net_.add("", DropoutLayer{0.2});
    net_.add("fc", LinearLayer{from_.outputs, from_.weight});
    return std::move(net_);
  }

 private:
  std::string conv(const std::string& name, std::int64_t outputs, std::int64_t kernel, std::int64_t stride,
                   const std::vector<std::string>& inputs) {
    net_.add(name + ".conv", Conv2dLayer{outputs, kernel, stride, kernel / 2, from_.weight, 1, false}, inputs);
    net_.add(name + ".bn", BatchNormLayer{.epsilon = 1e-3});
    return net_.add(name + ".relu", relu_);
  }

  void inception(const Inception& block) {
    const std::string name = std::string("inception") + block.name + ".";
    const auto one = conv(name + "branch1", block.one, 1, 1, {at_});
    conv(name + "branch2.0", block.three_reduced, 1, 1, {at_});
    const auto three = conv(name + "branch2.1", block.three, 3, 1, {});
    conv(name + "branch3.0", block.five_reduced, 1, 1, {at_});
    const auto five = conv(name + "branch3.1", block.five, 3, 1, {});
    net_.add(name + "branch4.0", kSame, {at_});
    const auto pooled = conv(name + "branch4.1", block.pooled, 1, 1, {});
    at_ = net_.add(name + "concat", ConcatLayer{}, {one, three, five, pooled});
  }

  void auxiliary(const std::string& name) {
    net_.add(name + ".pool", AdaptiveAveragePoolLayer{4}, {at_});
    conv(name + ".conv", 128, 1, 1, {});
    net_.add(name + ".fc1", LinearLayer{1024, from_.weight});
    net_.add(name + ".relu", relu_);
    net_.add(name + ".dropout", DropoutLayer{0.7});
    net_.add(name + ".fc2", LinearLayer{from_.outputs, from_.weight});
    net_.auxiliary.push_back({name + ".fc2", kAuxiliaryWeight});
  }

  const NetworkOptions& from_;
  ActivationLayer relu_;
  Network net_;
  std::string at_;
};

}  // namespace

Network googlenet(const NetworkOptions& from) { return Paper(from).build(); }
Network googlenet_torch(const NetworkOptions& from) { return Torch(from).build(); }

}  // namespace troupe::nn
