#include "nn/node_names.hpp"

namespace troupe::nn {
namespace {

std::string kind_of(const Layer& layer) {
  struct Names {
    std::string operator()(const LinearLayer&) const { return "fc"; }
    std::string operator()(const Conv2dLayer&) const { return "conv"; }
    std::string operator()(const PoolLayer&) const { return "pool"; }
    std::string operator()(const ActivationLayer& l) const { return std::string(to_string(l.kind)); }
    std::string operator()(const DropoutLayer&) const { return "dropout"; }
    std::string operator()(const FlattenLayer&) const { return "flatten"; }
    std::string operator()(const LrnLayer&) const { return "lrn"; }
    std::string operator()(const BatchNormLayer&) const { return "bn"; }
    std::string operator()(const AdaptiveAveragePoolLayer&) const { return "avgpool"; }
    std::string operator()(const AddLayer&) const { return "add"; }
    std::string operator()(const ConcatLayer&) const { return "concat"; }
  };
  return std::visit(Names{}, layer);
}

}  // namespace

std::string NodeNames::take(const Layer& layer, const std::string& given, const std::string& prefix) {
  if (!given.empty()) return taken_.insert(given).second ? given : std::string();
  const std::string kind = prefix + kind_of(layer);
  for (;;) {
    auto name = kind + std::to_string(++numbered_[kind]);
    if (taken_.insert(name).second) return name;
  }
}

}  // namespace troupe::nn
