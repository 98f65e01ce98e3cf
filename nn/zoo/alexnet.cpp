// AlexNet, in the paper's form and in torchvision's.
#include "nn/zoo/network.hpp"

namespace troupe::nn {

Network alexnet(const NetworkOptions& from) {
  const PoolLayer pool{PoolKind::max, 3, 2, 0};
  const ActivationLayer relu = from.activation_or(Activation::relu);
  const LrnLayer lrn{.size = 5, .alpha = 5e-4, .beta = 0.75, .k = 2};  // the paper's 1e-4 is not divided by the size
  Network net;
  const auto conv = [&](const char* name, std::int64_t outputs, std::int64_t kernel, std::int64_t groups) {
    net.add(name, Conv2dLayer{outputs, kernel, 1, kernel / 2, from.weight, groups});
    net.add("", relu);
  };
  const auto fc = [&](const char* name) {
    net.add(name, LinearLayer{4096, from.weight});
    net.add("", relu);
    net.add("", DropoutLayer{0.5});
  };
  net.add("conv1", Conv2dLayer{96, 11, 4, 0, from.weight});
  net.add("", relu);
  net.add("", lrn);
  net.add("", pool);
  conv("conv2", 256, 5, 2);
  net.add("", lrn);
  net.add("", pool);
  conv("conv3", 384, 3, 1);
  conv("conv4", 384, 3, 2);
  conv("conv5", 256, 3, 2);
  net.add("", pool);
  fc("fc6");
  fc("fc7");
  net.add("fc8", LinearLayer{from.outputs, from.weight});
  return net;
}

Network alexnet_torch(const NetworkOptions& from) {
  const PoolLayer pool{PoolKind::max, 3, 2, 0};
  const ActivationLayer relu = from.activation_or(Activation::relu);
  Network net;
  const auto conv = [&](const char* name, std::int64_t outputs) {
    net.add(name, Conv2dLayer{outputs, 3, 1, 1, from.weight});
    net.add("", relu);
  };
  const auto fc = [&](const char* name) {
    net.add("", DropoutLayer{0.5});
    net.add(name, LinearLayer{4096, from.weight});
    net.add("", relu);
  };
  net.add("features.0", Conv2dLayer{64, 11, 4, 2, from.weight});
  net.add("", relu);
  net.add("", pool);
  net.add("features.3", Conv2dLayer{192, 5, 1, 2, from.weight});
  net.add("", relu);
  net.add("", pool);
  conv("features.6", 384);
  conv("features.8", 256);
  conv("features.10", 256);
  net.add("", pool);
  net.add("", AdaptiveAveragePoolLayer{6});
  fc("classifier.1");
  fc("classifier.4");
  net.add("classifier.6", LinearLayer{from.outputs, from.weight});
  return net;
}

}  // namespace troupe::nn
