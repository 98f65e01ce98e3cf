// The form of an exported file: operators in order, weights by name, what readers are told.
#include "nn/onnx/encode.hpp"

#include <set>

#include <gtest/gtest.h>

#include "nn/onnx/onnx.pb.h"
#include "nn/zoo/models.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn {
namespace {

onnx::Model decoded(const Graph& graph, const std::map<std::string, std::string>& texts = {}) {
  std::size_t statistics = 0;
  for (const auto& statistic : graph.statistics()) statistics += static_cast<std::size_t>(statistic.channels);
  const auto bytes =
      encode_onnx(graph, testing::random_floats(static_cast<std::size_t>(graph.parameter_count()), 0.1, 1),
                  std::vector<float>(statistics, 1.0F), texts, "1.2");
  onnx::Model model;
  EXPECT_TRUE(model.ParseFromString(bytes.value()));
  return model;
}

Graph zoo(const std::string& name, Shape input) {
  ModelConfig config;
  config.name = name;
  return std::move(build_model(config, input, 10).value());
}

TEST(EncodeOnnx, EveryValueIsMadeOnceAndBeforeItIsRead) {
  for (const auto& graph : {zoo("lenet", {1, 28, 28}), zoo("googlenet", {3, 96, 96}), zoo("resnet18", {3, 64, 64})}) {
    SCOPED_TRACE(graph.name());
    const auto model = decoded(graph);
    std::set<std::string> known{"images"};
    for (const auto& tensor : model.graph().initializer()) EXPECT_TRUE(known.insert(tensor.name()).second);
    for (const auto& node : model.graph().node()) {
      for (const auto& input : node.input()) EXPECT_TRUE(known.contains(input)) << node.name() << " reads " << input;
      for (const auto& output : node.output()) EXPECT_TRUE(known.insert(output).second) << output;
    }
    EXPECT_TRUE(known.contains("logits"));
    EXPECT_EQ(model.graph().output(0).name(), "logits");
    EXPECT_EQ(model.graph().output(0).type().tensor_type().shape().dim(1).dim_value(), 10);
    EXPECT_EQ(model.graph().input(0).type().tensor_type().shape().dim(0).dim_param(), "batch");
  }
}

TEST(EncodeOnnx, WeightsHaveTheModelsNamesAndBytes) {
  const auto graph = zoo("resnet18", {3, 32, 32});
  const auto model = decoded(graph);
  const auto parameters = testing::random_floats(static_cast<std::size_t>(graph.parameter_count()), 0.1, 1);
  std::size_t offset = 0;
  for (int i = 0; i < static_cast<int>(graph.parameters().size()); ++i) {
    const auto& parameter = graph.parameters()[static_cast<std::size_t>(i)];
    const auto& tensor = model.graph().initializer(i);
    EXPECT_EQ(tensor.name(), parameter.name);
    EXPECT_EQ(std::vector<std::int64_t>(tensor.dims().begin(), tensor.dims().end()), parameter.shape);
    const auto size = static_cast<std::size_t>(parameter.size());
    const auto wanted = std::span(parameters).subspan(offset, size);
    EXPECT_EQ(tensor.raw_data(), std::string(reinterpret_cast<const char*>(wanted.data()), wanted.size_bytes()));
    offset += size;
  }
  EXPECT_EQ(model.graph().initializer(static_cast<int>(graph.parameters().size())).name(), "bn1.running_mean");
}

TEST(EncodeOnnx, AuxiliaryHeadsAndDropoutAreLeftOut) {
  const auto model = decoded(zoo("googlenet", {3, 96, 96}));
  for (const auto& tensor : model.graph().initializer())
    EXPECT_FALSE(tensor.name().starts_with("loss")) << tensor.name();
  for (const auto& node : model.graph().node()) {
    EXPECT_FALSE(node.name().starts_with("loss")) << node.name();
    EXPECT_NE(node.op_type(), "Dropout");
  }
}

TEST(EncodeOnnx, ReadersAreToldWhoWroteItAndHowImagesArePrepared) {
  const auto model = decoded(zoo("lenet", {1, 28, 28}), {{"deviation", "0.3"}, {"mean", "0.1"}});
  EXPECT_EQ(model.producer_name(), "troupe");
  EXPECT_EQ(model.producer_version(), "1.2");
  EXPECT_EQ(model.opset_import(0).version(), 13);
  ASSERT_EQ(model.metadata_props_size(), 2);
  EXPECT_EQ(model.metadata_props(1).key(), "mean");
  EXPECT_EQ(model.metadata_props(1).value(), "0.1");
}

TEST(EncodeOnnx, SizesThatDoNotFitAreRefused) {
  const auto graph = zoo("lenet", {1, 28, 28});
  std::vector<float> parameters(static_cast<std::size_t>(graph.parameter_count()) + 1);
  EXPECT_THROW((void)encode_onnx(graph, parameters, {}, {}, ""), std::invalid_argument);
  parameters.resize(parameters.size() - 2);
  EXPECT_THROW((void)encode_onnx(graph, parameters, {}, {}, ""), std::invalid_argument);
}

}  // namespace
}  // namespace troupe::nn
