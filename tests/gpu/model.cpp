#include "tests/gpu/model.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/random.hpp"
#include "nn/zoo/models.hpp"

namespace troupe::gpu::testing {
namespace {

template <class T>
T or_throw(core::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

}  // namespace

nn::Graph branching_net() {
  using namespace nn;
  constexpr ActivationLayer kRelu{Activation::relu};
  return or_throw(Graph::build("branching", {3, 12, 10},
                               {{Conv2dLayer{8, 3, 1, 1, {}}, "stem"},
                                {kRelu, "in"},
                                {Conv2dLayer{8, 3, 1, 1, {}, 1, false}, "a"},
                                {BatchNormLayer{}, "a.bn"},
                                {kRelu, "a.relu"},
                                {Conv2dLayer{8, 3, 1, 1, {}, 2}, "b"},
                                {BatchNormLayer{}, "b.bn"},
                                {AddLayer{}, "sum", {"b.bn", "in"}},
                                {kRelu, "sum.relu"},
                                {PoolLayer{PoolKind::max, 3, 2, 1}, "max"},
                                {LrnLayer{}, "lrn"},
                                {LinearLayer{5, {}}, "extra", {"lrn"}},
                                {Conv2dLayer{6, 1, 1, 0, {}}, "c", {"lrn"}},
                                {ActivationLayer{Activation::tanh}, "c.tanh"},
                                {ConcatLayer{}, "joined", {"c.tanh", "lrn"}},
                                {DropoutLayer{0.3}, "dropped"},
                                {AdaptiveAveragePoolLayer{2}, "mean"},
                                {FlattenLayer{}, "flat"},
                                {LinearLayer{9, {}}, "fc1"},
                                {kRelu, "fc1.relu"},
                                {LinearLayer{5, {}}, "fc2"}},
                               Loss::softmax_cross_entropy, {{"extra", 0.3}}));
}

nn::Graph lenet() { return zoo("lenet", {1, 28, 28}, 10); }

nn::Graph zoo(const std::string& name, nn::Shape input, std::int64_t classes) {
  nn::ModelConfig config;
  config.name = name;
  return or_throw(nn::build_model(config, input, classes));
}

std::vector<float> random_floats(std::size_t count, double deviation, std::uint64_t index) {
  core::Random random(7, core::Purpose::test, index);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(deviation * random.normal());
  return values;
}

TrainedModel::TrainedModel(std::shared_ptr<Device> on, const nn::Graph& net, nn::CompileOptions options)
    : device(std::move(on)), backend(make_backend({device}, "gpu")), graph(net) {
  if (options.arenas == nullptr) options.arenas = &host;
  replica = or_throw(backend->compile(graph, options));
  std::vector<float> canonical;
  for (const nn::Parameter& parameter : graph.parameters()) {
    const double deviation = 1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(parameter.fan_in, 4)));
    const auto values = random_floats(static_cast<std::size_t>(parameter.size()), deviation, 100 + canonical.size());
    canonical.insert(canonical.end(), values.begin(), values.end());
  }
  replica->import_canonical(canonical);
  images = random_floats(static_cast<std::size_t>(options.batch * graph.input().size()), 1.0, 1);
  core::Random random(7, core::Purpose::test, 2);
  for (std::int64_t i = 0; i < options.batch; ++i)
    labels.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(graph.output().size()))));
  velocity = or_throw(core::Buffer::allocate(*options.arenas, replica->parameters().size()));
}

nn::Batch TrainedModel::batch(std::uint64_t lease) const {
  return {images, labels, lease, static_cast<std::int64_t>(labels.size())};
}

nn::StepResult TrainedModel::step(std::uint64_t lease) { return or_throw(replica->step(batch(lease), {})); }

void TrainedModel::momentum_step(std::uint64_t lease) {
  (void)step(lease);
  replica->apply({core::OptimizerKind::momentum, 0.01F, 0.9F, 1e-3F}, velocity.view());
}

std::vector<float> TrainedModel::parameters() {
  const auto all = replica->parameters();
  return {all.begin(), all.end()};
}

std::vector<float> TrainedModel::gradients() {
  const auto all = replica->gradients();
  return {all.begin(), all.end()};
}

}  // namespace troupe::gpu::testing
