// Ten steps with momentum and weight decay: the sequence of losses is PyTorch's.
#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/golden/formula.hpp"

namespace troupe::golden {
namespace {

constexpr double kSequenceTolerance = 1e-3;  // relative: rounding grows from step to step

/// Two residual blocks; make_goldens.py has the same.
nn::Graph small_resnet() {
  using nn::BatchNormLayer;
  const nn::Initialiser he{nn::InitialiserKind::he};
  const nn::ActivationLayer relu{nn::Activation::relu};
  std::vector<nn::NodeSpec> nodes;
  const auto conv = [&](const std::string& name, std::int64_t outputs, std::int64_t kernel, std::int64_t stride,
                        const std::vector<std::string>& inputs = {}) {
    nodes.push_back({nn::Conv2dLayer{outputs, kernel, stride, kernel / 2, he, 1, false}, name, inputs});
  };
  const auto block = [&](const std::string& name, const std::string& input, std::int64_t outputs, std::int64_t stride) {
    conv(name + "conv1", outputs, 3, stride, {input});
    nodes.push_back({BatchNormLayer{}, name + "bn1"});
    nodes.push_back({relu});
    conv(name + "conv2", outputs, 3, 1);
    nodes.push_back({BatchNormLayer{}, name + "bn2"});
    std::string kept = input;
    if (stride > 1) {
      conv(name + "downsample.0", outputs, 1, stride, {input});
      kept = name + "downsample.1";
      nodes.push_back({BatchNormLayer{}, kept});
    }
    nodes.push_back({nn::AddLayer{}, name + "add", {name + "bn2", kept}});
    nodes.push_back({relu, name + "relu"});
  };
  conv("conv1", 16, 3, 1);
  nodes.push_back({BatchNormLayer{}, "bn1"});
  nodes.push_back({relu, "relu"});
  block("layer1.0.", "relu", 16, 1);
  block("layer2.0.", "layer1.0.relu", 32, 2);
  nodes.push_back({nn::AdaptiveAveragePoolLayer{1}});
  nodes.push_back({nn::LinearLayer{10, he}, "fc"});
  auto graph = nn::Graph::build("small_resnet", {3, 16, 16}, nodes, nn::Loss::softmax_cross_entropy);
  if (!graph) throw std::runtime_error(graph.error().message);
  return std::move(*graph);
}

class GoldenTraining : public GoldenTest {};
TROUPE_OVER_GOLDEN_BACKENDS(GoldenTraining);

TEST_P(GoldenTraining, TenLossesAreThoseOfPyTorch) {
  for (const auto& row : rows("losses.json")) {
    SCOPED_TRACE(row["model"].get<std::string>());
    const auto graph = row["model"] == "small_resnet" ? small_resnet() : zoo_model(row);
    const std::int64_t batch = row["batch"];
    Model model(GetParam(), graph, batch, true);
    auto velocity = core::Buffer::allocate(model.memory, model.replica->parameters().size()).value();
    core::OptimizerStep step{.kind = core::OptimizerKind::momentum,
                             .lr = row["lr"].get<float>(),
                             .momentum = row["momentum"].get<float>(),
                             .weight_decay = row["weight_decay"].get<float>()};
    const auto losses = row["losses"].get<std::vector<double>>();
    ASSERT_EQ(losses.size(), 10U);
    for (std::size_t i = 0; i < losses.size(); ++i) {
      const auto samples = samples_of(graph, batch, "." + std::to_string(i));
      const auto result = model.replica->step(samples.batch(), {});
      ASSERT_TRUE(result) << result.error().message;
      EXPECT_NEAR(result->loss, losses[i], kSequenceTolerance * losses[i]) << "step " << i;
      model.replica->apply(step, velocity.view());
      ++step.t;
    }
  }
}

}  // namespace
}  // namespace troupe::golden
