// Exported networks pass ONNX's own checker, and evaluated by the specification's operators they give the backend's outputs. Needs a Python
// with onnx and torch (evaluate.py); skips without.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpu/backend.hpp"
#include "nn/onnx/encode.hpp"
#include "nn/zoo/models.hpp"
#include "tests/folder.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn {
namespace {

constexpr double kOutputTolerance = 1e-4;  // of the greatest output
constexpr std::int64_t kSamples = 3;

/// The first Python that has what evaluate.py needs.
const std::optional<std::string>& python() {
  static const auto found = []() -> std::optional<std::string> {
    for (const char* name : {"python3", "/usr/bin/python3"})
      if (std::system(fmt::format("timeout 60 {} -c 'import numpy, onnx, torch' >/dev/null 2>&1", name).c_str()) == 0)
        return name;
    return std::nullopt;
  }();
  return found;
}

void expect_same_outputs(const Graph& graph) {
  SCOPED_TRACE(graph.name());
  const tests::Folder folder;
  const auto backend = cpu::make_backend();
  testing::Model model(*backend, graph, {.batch = kSamples, .training = false});
  std::vector<float> statistics = testing::random_floats(model.replica->statistics().size(), 0.2, 5);
  for (float& value : statistics) value = 1 + std::abs(value);  // variances are positive
  const auto layout = statistics_layout(graph);
  statistics.resize(layout.canonical_floats());
  layout.from_canonical(statistics, model.replica->statistics());
  ASSERT_TRUE(model.replica->evaluate(model.batch()));
  const auto bytes = encode_onnx(graph, model.canonical_parameters(), statistics, {}, "test");
  ASSERT_TRUE(bytes) << bytes.error().message;

  const auto file = folder.write("model.onnx", *bytes);
  const auto images =
      folder.write("images", {reinterpret_cast<const char*>(model.images.data()), model.images.size() * sizeof(float)});
  const auto command = fmt::format("timeout 250 {} {}/tests/nn/onnx/evaluate.py {} {} {} 2>&1", *python(),
                                   TROUPE_SOURCE_DIR, file, images, folder.file("logits"));
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto text = folder.read("logits");
  const auto outputs = model.replica->outputs();
  ASSERT_EQ(text.size(), outputs.size_bytes());
  std::vector<float> logits(outputs.size());
  std::memcpy(logits.data(), text.data(), text.size());
  double greatest = 0, error = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    greatest = std::max(greatest, std::abs(static_cast<double>(outputs[i])));
    error = std::max(error, std::abs(static_cast<double>(outputs[i] - logits[i])));
  }
  EXPECT_LT(error, kOutputTolerance * greatest);
}

class ExportedNetwork : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!python()) GTEST_SKIP() << "no Python with onnx and torch (Debian: python3-onnx, python3-torch)";
  }
};

TEST_F(ExportedNetwork, OfTheZooGivesTheBackendsOutputs) {
  const std::vector<std::pair<std::string, Shape>> models{{"lenet", {1, 28, 28}},     {"cifar", {3, 28, 28}},
                                                          {"googlenet", {3, 96, 96}}, {"googlenet_torch", {3, 70, 70}},
                                                          {"resnet18", {3, 64, 64}},  {"wrn_28_4", {3, 32, 32}}};
  for (const auto& [name, input] : models) {
    ModelConfig config;
    config.name = name;
    expect_same_outputs(build_model(config, input, 10).value());
  }
}

TEST_F(ExportedNetwork, OfEveryLayerGivesTheBackendsOutputs) {
  using testing::graph_of;
  using testing::graph_of_nodes;
  const ActivationLayer relu{Activation::relu}, sigmoid{Activation::sigmoid}, tanh{Activation::tanh};
  const auto pool = [](PoolKind kind, std::int64_t kernel, std::int64_t stride, std::int64_t padding, bool ceil) {
    return PoolLayer{kind, kernel, stride, padding, ceil};
  };
  // Groups, LRN, padding, pooling with and without a window over the end, for every remainder.
  for (const std::int64_t size : {13, 14, 15, 16})
    for (const bool ceil : {false, true})
      expect_same_outputs(graph_of({4, size, size + 1}, {Conv2dLayer{6, 3, 1, 1, {}, 2}, LrnLayer{3, 0.5, 0.75, 2},
                                                         relu, pool(PoolKind::average, 3, 2, 1, ceil), tanh,
                                                         pool(PoolKind::max, 3, 2, 1, ceil), LinearLayer{5, {}}}));
  // Windows of one size, of several sizes, and the whole image.
  for (const std::int64_t windows : {1, 3, 4, 6})
    expect_same_outputs(graph_of({3, 12, 6}, {Conv2dLayer{4, 1, 1, 0, {}}, AdaptiveAveragePoolLayer{windows}, sigmoid,
                                              DropoutLayer{0.5}, LinearLayer{5, {}}}));
  // Vectors: normalised, joined with an image of one pixel, and read by a convolution.
  expect_same_outputs(graph_of_nodes({2, 5, 5}, {{LinearLayer{6, {}}, "a", {}},
                                                 {BatchNormLayer{}, "b", {}},
                                                 {Conv2dLayer{6, 5, 1, 0, {}}, "c", {"input"}},
                                                 {AddLayer{}, "d", {"b", "c", "a"}},
                                                 {ConcatLayer{}, "e", {"d", "c"}},
                                                 {Conv2dLayer{8, 1, 1, 0, {}, 4}, "f", {}},
                                                 {FlattenLayer{}, "g", {}},
                                                 {LrnLayer{5, 1.0, 0.5, 1}, "h", {}},
                                                 {LinearLayer{4, {}}, "logits", {}}}));
}

}  // namespace
}  // namespace troupe::nn
