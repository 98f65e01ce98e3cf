// The descriptions of every model of the zoo, as graphs and calls of the libraries.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "gpu/plans/matrix_call.hpp"
#include "gpu/plans/operation_graph.hpp"
#include "nn/zoo/models.hpp"
#include "tests/gpu/model.hpp"
#include "tests/gpu/plans/recorded.hpp"

namespace troupe::gpu {
namespace {

constexpr std::int64_t kZooBatch = 64;

class ZooGraphs : public ::testing::TestWithParam<std::string> {};

/// Dense, channels innermost: each stride is the product of the extents within it.
void expect_dense(const GraphTensor& t, const std::string& what) {
  EXPECT_EQ(t.strides[1], 1) << what;
  EXPECT_EQ(t.strides[3], t.dims[1]) << what;
  EXPECT_EQ(t.strides[2], t.dims[1] * t.dims[3]) << what;
  EXPECT_EQ(t.strides[0], t.dims[1] * t.dims[3] * t.dims[2]) << what;
}

TEST_P(ZooGraphs, ConvolutionsAreGraphsOfDenseTensorsThatFit) {
  for (const auto precision : {nn::Precision::fp32, nn::Precision::bf16}) {
    const auto seen = gpu::testing::record_descriptions(GetParam(), precision, kZooBatch);
    for (const Convolution& c : seen.convolutions) {
      const OperationGraph graph = operation_graph(c);
      const std::string what = to_string(c);
      for (const GraphTensor& tensor : graph.tensors) {
        expect_dense(tensor, what);
        const bool sums = tensor.id == static_cast<std::int64_t>(TensorId::sum) ||
                          tensor.id == static_cast<std::int64_t>(TensorId::squares);
        const Type wanted = !tensor.is_virtual && !sums && precision == nn::Precision::bf16 ? Type::bf16 : Type::fp32;
        EXPECT_EQ(tensor.type, wanted) << what;
      }
      const auto &x = graph.tensors[0], &w = graph.tensors[1];
      EXPECT_EQ(x.dims[0], kZooBatch) << what;
      EXPECT_EQ(x.dims[1], w.dims[1] * c.shape.groups) << what;
      EXPECT_EQ(graph.casts_weight_gradient, c.direction == Direction::backward_weights && c.type != Type::fp32)
          << what;
    }
  }
}

TEST_P(ZooGraphs, EveryConvolutionOfTheModelIsThereInAllItsDirections) {
  const auto seen = gpu::testing::record_descriptions(GetParam(), nn::Precision::fp32, kZooBatch);
  std::set<ConvolutionShape> forward, weights, data;
  for (const Convolution& c : seen.convolutions)
    (c.direction == Direction::forward         ? forward
     : c.direction == Direction::backward_data ? data
                                               : weights)
        .insert(c.shape);
  EXPECT_EQ(forward, weights);
  for (const ConvolutionShape& shape : data) EXPECT_TRUE(forward.contains(shape));
  // Images have no gradient; every other input of a convolution in the zoo has one.
  EXPECT_LE(forward.size() - data.size(), 1U);
}

/// Output shape, kernel, stride of each convolution that a batch norm reads, from the graph alone.
using NormalisedConvolution = std::tuple<TensorShape, std::int64_t, std::int64_t>;

std::set<NormalisedConvolution> normalised_convolutions(const nn::Graph& graph) {
  std::set<NormalisedConvolution> all;
  for (const nn::Node& node : graph.nodes()) {
    if (!std::holds_alternative<nn::BatchNormLayer>(node.layer) || node.inputs.front() < 0) continue;
    const nn::Node& in_front = graph.nodes()[static_cast<std::size_t>(node.inputs.front())];
    if (const auto* c = std::get_if<nn::Conv2dLayer>(&in_front.layer))
      all.insert({{kZooBatch, in_front.output.height, in_front.output.width, c->outputs}, c->kernel, c->stride});
  }
  return all;
}

TEST_P(ZooGraphs, StatisticsAreAskedForWhereABatchNormReadsAConvolutionOf16Bits) {
  for (const nn::ZooEntry& entry : nn::model_zoo()) {
    if (entry.name != GetParam()) continue;
    const auto wanted = normalised_convolutions(gpu::testing::zoo(entry.name, entry.input, entry.classes));
    const std::set<std::string> normalised{"googlenet_torch", "resnet18", "resnet50", "wrn_28_4"};
    EXPECT_EQ(!wanted.empty(), normalised.contains(std::string(entry.name)));
    for (const auto precision : {nn::Precision::fp32, nn::Precision::tf32, nn::Precision::bf16, nn::Precision::fp16}) {
      const bool of_16_bits = precision == nn::Precision::bf16 || precision == nn::Precision::fp16;
      const auto seen = gpu::testing::record_descriptions(GetParam(), precision, kZooBatch, false);
      for (const Convolution& c :
           gpu::testing::record_descriptions(GetParam(), precision, kZooBatch, true).convolutions)
        EXPECT_FALSE(c.statistics) << "engines add atomically";
      std::set<NormalisedConvolution> asked;
      for (const Convolution& c : seen.convolutions) {
        if (!c.statistics) continue;
        asked.insert({c.shape.output, c.shape.kernel, c.shape.stride});
        EXPECT_EQ(c.direction, Direction::forward);
        EXPECT_FALSE(c.activation || c.addend || c.bias);
        EXPECT_FALSE(c.deterministic);
        Convolution alone = c;
        alone.statistics = false;
        EXPECT_TRUE(seen.convolutions.contains(alone)) << "for evaluation, and where no engine sums";
      }
      EXPECT_EQ(asked, of_16_bits ? wanted : std::set<NormalisedConvolution>{}) << name_of(precision);
    }
  }
}

TEST_P(ZooGraphs, ProductsAreCallsOverMatricesThatFit) {
  for (const auto precision : {nn::Precision::fp32, nn::Precision::bf16}) {
    const auto seen = gpu::testing::record_descriptions(GetParam(), precision, kZooBatch);
    EXPECT_FALSE(seen.products.empty());
    for (const MatrixProduct& product : seen.products) {
      const auto call = matrix_call(product);
      const std::string what = to_string(product);
      EXPECT_EQ(call.transpose_first ? call.first.columns : call.first.rows, call.d.rows) << what;
      EXPECT_EQ(call.transpose_second ? call.second.rows : call.second.columns, call.d.columns) << what;
      EXPECT_EQ(call.transpose_first ? call.first.rows : call.first.columns,
                call.transpose_second ? call.second.columns : call.second.rows)
          << what;
      for (const ColumnMatrix* matrix : {&call.first, &call.second, &call.d})
        EXPECT_EQ(matrix->leading, matrix->rows) << what;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ZooGraphs, ::testing::ValuesIn(gpu::testing::all_models()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace troupe::gpu
