#include "nn/checkpoint/tensors.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>

#include <gtest/gtest.h>

#include "nn/zoo/models.hpp"

namespace troupe::nn {
namespace {

Graph small() {
  auto graph =
      Graph::sequential("m", {1, 4, 4}, {Conv2dLayer{2, 3, 1, 0, {}}, LinearLayer{3, {}}}, Loss::softmax_cross_entropy);
  return std::move(graph.value());
}

std::vector<float> iota(const Graph& graph, float first) {
  std::vector<float> values(static_cast<std::size_t>(graph.parameter_count()));
  std::iota(values.begin(), values.end(), first);
  return values;
}

SafetensorsFile file_of(const std::vector<TensorView>& tensors) {
  const auto encoded = encode_safetensors(tensors, {});
  std::vector<std::byte> bytes;
  for (const auto part : encoded.value().parts()) bytes.insert(bytes.end(), part.begin(), part.end());
  auto file = parse_safetensors(std::move(bytes), "f", Checksums::required);
  return std::move(file.value());
}

TEST(Tensors, NamesAndShapesAreTheGraphs) {
  const Graph graph = small();
  const auto values = iota(graph, 0);
  const auto tensors = canonical_tensors(graph, values);
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors[0].name, "conv1.weight");
  EXPECT_EQ(tensors[0].shape, (std::vector<std::int64_t>{2, 1, 3, 3}));
  EXPECT_EQ(tensors[2].name, "fc1.weight");
  EXPECT_EQ(tensors[2].shape, (std::vector<std::int64_t>{3, 8}));
  EXPECT_EQ(reinterpret_cast<const float*>(tensors[2].data.data())[0], 20);  // after 18 weights and 2 biases
  EXPECT_EQ(canonical_tensors(graph, values, worker_prefix(3) + std::string(kVelocityPrefix))[1].name,
            "worker.3.optimizer.velocity.conv1.bias");
}

TEST(Tensors, ParametersAndOptimizerStateShareAFile) {
  const Graph graph = small();
  const auto parameters = iota(graph, 0);
  const auto velocity = iota(graph, 1000);
  auto tensors = canonical_tensors(graph, parameters);
  for (auto& tensor : canonical_tensors(graph, velocity, kVelocityPrefix)) tensors.push_back(std::move(tensor));
  const auto file = file_of(tensors);
  std::vector<float> back(parameters.size());
  ASSERT_TRUE(canonical_from(file, graph, back));
  EXPECT_EQ(back, parameters);
  ASSERT_TRUE(canonical_from(file, graph, back, kVelocityPrefix));
  EXPECT_EQ(back, velocity);
  const auto missing = canonical_from(file, graph, back, worker_prefix(0));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, core::Errc::config);
  EXPECT_EQ(missing.error().message,
            "f: tensor \"worker.0.conv1.weight\": it is missing: is it of the model that the config describes?");
}

TEST(Tensors, AnotherModelsFileIsRefusedByName) {
  const Graph graph = small();
  const auto values = iota(graph, 0);
  const auto file = file_of(canonical_tensors(graph, values));
  auto wider =
      Graph::sequential("w", {1, 4, 4}, {Conv2dLayer{2, 3, 1, 0, {}}, LinearLayer{4, {}}}, Loss::softmax_cross_entropy);
  std::vector<float> back(static_cast<std::size_t>(wider->parameter_count()));
  const auto result = canonical_from(file, *wider, back);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "f: tensor \"fc1.weight\": its shape is [3, 8], the model needs [4, 8]: is it of the model that the config "
            "describes?");
}

Graph of_program() {
  return Graph::of_program("p", {{"scale", {}}, {"one", {1}}, {"w", {2, 3}}}, {{"momentum", {}}, {"mean", {2, 2}}})
      .value();
}

TEST(Tensors, ScalarsAndStatisticsOfProgramsKeepTheirShapes) {
  const Graph graph = of_program();
  const auto parameters = iota(graph, 0);
  const std::vector<float> statistics{9, 10, 11, 12, 13};
  auto tensors = canonical_tensors(graph, parameters);
  for (auto& tensor : statistics_tensors(graph, statistics)) tensors.push_back(std::move(tensor));
  const auto file = file_of(tensors);
  EXPECT_EQ(file.find("scale")->shape, std::vector<std::int64_t>{});
  EXPECT_EQ(file.find("one")->shape, std::vector<std::int64_t>{1});
  EXPECT_EQ(file.find("momentum")->shape, std::vector<std::int64_t>{});
  EXPECT_EQ(file.find("mean")->shape, (std::vector<std::int64_t>{2, 2}));
  std::vector<float> parameters_back(parameters.size()), statistics_back(statistics.size());
  ASSERT_TRUE(canonical_from(file, graph, parameters_back));
  ASSERT_TRUE(statistics_from(file, graph, statistics_back));
  EXPECT_EQ(parameters_back, parameters);
  EXPECT_EQ(statistics_back, statistics);
}

/// They have scalars as [1], and statistics as rows.
TEST(Tensors, OlderFilesOfProgramsAreRead) {
  const Graph graph = of_program();
  const std::vector<float> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  const auto bytes = [&](std::size_t first, std::size_t count) {
    return std::as_bytes(std::span(values).subspan(first, count));
  };
  const auto file = file_of({{"scale", DType::f32, {1}, bytes(0, 1)},
                             {"one", DType::f32, {1}, bytes(1, 1)},
                             {"w", DType::f32, {2, 3}, bytes(2, 6)},
                             {"momentum", DType::f32, {1}, bytes(8, 1)},
                             {"mean", DType::f32, {4}, bytes(9, 4)}});
  std::vector<float> parameters(8), statistics(5);
  ASSERT_TRUE(canonical_from(file, graph, parameters));
  ASSERT_TRUE(statistics_from(file, graph, statistics));
  EXPECT_TRUE(std::ranges::equal(parameters, std::span(values).first(8)));
  EXPECT_TRUE(std::ranges::equal(statistics, std::span(values).last(5)));
  const auto other = file_of({{"scale", DType::f32, {1, 1}, bytes(0, 1)}});
  EXPECT_NE(canonical_from(other, graph, parameters).error().message.find("its shape is [1, 1], the model needs []"),
            std::string::npos);
}

TEST(Tensors, SizesAreChecked) {
  const Graph graph = small();
  std::vector<float> wrong(3);
  EXPECT_THROW((void)canonical_tensors(graph, wrong), std::invalid_argument);
  const auto values = iota(graph, 0);
  const auto file = file_of(canonical_tensors(graph, values));
  EXPECT_THROW((void)canonical_from(file, graph, wrong), std::invalid_argument);
}

}  // namespace
}  // namespace troupe::nn
