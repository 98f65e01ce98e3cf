#include "gpu/plans/operation_graph.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>

#include <gtest/gtest.h>

#include "core/random.hpp"

namespace troupe::gpu {
namespace {

Convolution small_convolution(Direction direction, std::int64_t groups) {
  Convolution c;
  c.direction = direction;
  c.shape = {{2, 7, 6, 4}, {2, 3, 3, 6}, 3, 2, 1, groups};
  c.shape.output = {2, (7 + 2 - 3) / 2 + 1, (6 + 2 - 3) / 2 + 1, 6};
  return c;
}

const GraphTensor& tensor_of(const OperationGraph& graph, TensorId id) {
  for (const GraphTensor& tensor : graph.tensors)
    if (tensor.id == static_cast<std::int64_t>(id)) return tensor;
  throw std::out_of_range("no such tensor");
}

/// Executes a graph as its tensors describe it: the memory of each id, found by dims and strides only.
class Interpreter {
 public:
  explicit Interpreter(const OperationGraph& graph) : graph_(graph) {
    for (const GraphTensor& t : graph.tensors) {
      const auto elements = t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3];
      memory_[t.id].assign(static_cast<std::size_t>(elements), 0);
    }
  }
  std::vector<double>& memory(TensorId id) { return memory_.at(static_cast<std::int64_t>(id)); }
  void run() {
    for (const GraphNode& node : graph_.nodes) execute(node);
  }

 private:
  using Index = std::array<std::int64_t, 4>;
  double& at(const GraphTensor& t, const Index& i) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < 4; ++d) offset += (t.dims[d] == 1 ? 0 : i[d]) * t.strides[d];
    return memory_.at(t.id).at(static_cast<std::size_t>(offset));
  }
  const GraphTensor& tensor(int index) const { return graph_.tensors.at(static_cast<std::size_t>(index)); }

  void execute(const GraphNode& node) {
    if (node.kind == NodeKind::add || node.kind == NodeKind::relu || node.kind == NodeKind::sigmoid ||
        node.kind == NodeKind::tanh)
      return pointwise(node);
    if (node.kind == NodeKind::statistics) return statistics(node);
    const GraphTensor &x = tensor(node.first), &w = tensor(node.second), &y = tensor(node.output);
    const auto groups = x.dims[1] / w.dims[1], out_per_group = w.dims[0] / groups;
    for (std::int64_t n = 0; n < y.dims[0]; ++n)
      for (std::int64_t k = 0; k < y.dims[1]; ++k)
        for (std::int64_t p = 0; p < y.dims[2]; ++p)
          for (std::int64_t q = 0; q < y.dims[3]; ++q)
            for (std::int64_t c = 0; c < w.dims[1]; ++c)
              for (std::int64_t r = 0; r < w.dims[2]; ++r)
                for (std::int64_t s = 0; s < w.dims[3]; ++s) {
                  const auto row = p * graph_.stride - graph_.padding + r,
                             column = q * graph_.stride - graph_.padding + s;
                  if (row < 0 || row >= x.dims[2] || column < 0 || column >= x.dims[3]) continue;
                  double& in = at(x, {n, k / out_per_group * w.dims[1] + c, row, column});
                  double& weight = at(w, {k, c, r, s});
                  double& out = at(y, {n, k, p, q});
                  if (node.kind == NodeKind::convolution_forward) out += in * weight;
                  if (node.kind == NodeKind::convolution_backward_data) in += out * weight;
                  if (node.kind == NodeKind::convolution_backward_weights) weight += in * out;
                }
  }
  void statistics(const GraphNode& node) {
    const GraphTensor& y = tensor(node.first);
    for (std::int64_t n = 0; n < y.dims[0]; ++n)
      for (std::int64_t k = 0; k < y.dims[1]; ++k)
        for (std::int64_t p = 0; p < y.dims[2]; ++p)
          for (std::int64_t q = 0; q < y.dims[3]; ++q) {
            const double value = at(y, {n, k, p, q});
            at(tensor(node.output), {0, k, 0, 0}) += value;
            at(tensor(node.second), {0, k, 0, 0}) += value * value;
          }
  }
  void pointwise(const GraphNode& node) {
    const GraphTensor& out = tensor(node.output);
    for (std::int64_t n = 0; n < out.dims[0]; ++n)
      for (std::int64_t k = 0; k < out.dims[1]; ++k)
        for (std::int64_t p = 0; p < out.dims[2]; ++p)
          for (std::int64_t q = 0; q < out.dims[3]; ++q) {
            const double first = at(tensor(node.first), {n, k, p, q});
            at(out, {n, k, p, q}) =
                node.kind == NodeKind::add ? first + at(tensor(node.second), {n, k, p, q}) : std::max(first, 0.0);
          }
  }

  const OperationGraph& graph_;
  std::map<std::int64_t, std::vector<double>> memory_;
};

void randomise(std::vector<double>& values, std::uint64_t index) {
  core::Random random(3, core::Purpose::test, index);
  for (double& value : values) value = random.normal();
}

/// The convolution's formula over plain arrays: x NHWC, w [outputs, kernel, kernel, channels / groups], y NHWC. Calls use(x, w, y) with the
/// positions of each product.
template <class Use>
void each_product(const ConvolutionShape& s, const Use& use) {
  const auto channels = s.input.channels / s.groups, outputs = s.output.channels / s.groups;
  for (std::int64_t n = 0; n < s.output.batch; ++n)
    for (std::int64_t p = 0; p < s.output.height; ++p)
      for (std::int64_t q = 0; q < s.output.width; ++q)
        for (std::int64_t k = 0; k < s.output.channels; ++k)
          for (std::int64_t r = 0; r < s.kernel; ++r)
            for (std::int64_t t = 0; t < s.kernel; ++t)
              for (std::int64_t c = 0; c < channels; ++c) {
                const auto row = p * s.stride - s.padding + r, column = q * s.stride - s.padding + t;
                if (row < 0 || row >= s.input.height || column < 0 || column >= s.input.width) continue;
                const auto x = ((n * s.input.height + row) * s.input.width + column) * s.input.channels +
                               k / outputs * channels + c;
                const auto w = ((k * s.kernel + r) * s.kernel + t) * channels + c;
                const auto y = ((n * s.output.height + p) * s.output.width + q) * s.output.channels + k;
                use(static_cast<std::size_t>(x), static_cast<std::size_t>(w), static_cast<std::size_t>(y));
              }
}

class ConvolutionGraph : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(ConvolutionGraph, ForwardIsTheFormulaWithBiasAddendAndRelu) {
  Convolution c = small_convolution(Direction::forward, GetParam());
  c.bias = c.addend = true;
  c.activation = nn::Activation::relu;
  const OperationGraph graph = operation_graph(c);
  Interpreter run(graph);
  for (const TensorId id : {TensorId::x, TensorId::w, TensorId::bias, TensorId::addend})
    randomise(run.memory(id), static_cast<std::uint64_t>(id));
  const auto outputs = static_cast<std::size_t>(c.shape.output.channels);
  std::vector<double> expected = run.memory(TensorId::addend);
  for (std::size_t y = 0; y < expected.size(); ++y) expected[y] += run.memory(TensorId::bias).at(y % outputs);
  each_product(c.shape, [&](auto x, auto w, auto y) {
    expected.at(y) += run.memory(TensorId::x).at(x) * run.memory(TensorId::w).at(w);
  });
  run.run();
  for (std::size_t y = 0; y < expected.size(); ++y)
    EXPECT_NEAR(run.memory(TensorId::y).at(y), std::max(expected[y], 0.0), 1e-12) << y;
}

TEST_P(ConvolutionGraph, StatisticsAreTheSumsOfWhatIsWritten) {
  for (const bool bias : {false, true}) {
    Convolution c = small_convolution(Direction::forward, GetParam());
    c.type = Type::fp16;
    c.bias = bias;
    c.statistics = true;
    const OperationGraph graph = operation_graph(c);
    Interpreter run(graph);
    for (const TensorId id : {TensorId::x, TensorId::w}) randomise(run.memory(id), static_cast<std::uint64_t>(id));
    const auto outputs = static_cast<std::size_t>(c.shape.output.channels);
    std::vector<double> y(static_cast<std::size_t>(c.shape.output.size())), sum(outputs), squares(outputs);
    if (bias) {
      randomise(run.memory(TensorId::bias), 4);
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = run.memory(TensorId::bias).at(i % outputs);
    }
    each_product(c.shape, [&](auto in, auto weight, auto out) {
      y.at(out) += run.memory(TensorId::x).at(in) * run.memory(TensorId::w).at(weight);
    });
    for (std::size_t i = 0; i < y.size(); ++i) {
      sum[i % outputs] += y[i];
      squares[i % outputs] += y[i] * y[i];
    }
    run.run();
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(run.memory(TensorId::y).at(i), y[i], 1e-12) << i;
    for (std::size_t k = 0; k < outputs; ++k) {
      EXPECT_NEAR(run.memory(TensorId::sum).at(k), sum[k], 1e-10) << k;
      EXPECT_NEAR(run.memory(TensorId::squares).at(k), squares[k], 1e-10) << k;
    }
  }
}

TEST_P(ConvolutionGraph, BackwardDataIsTheFormula) {
  const Convolution c = small_convolution(Direction::backward_data, GetParam());
  const OperationGraph graph = operation_graph(c);
  Interpreter run(graph);
  for (const TensorId id : {TensorId::w, TensorId::y}) randomise(run.memory(id), static_cast<std::uint64_t>(id));
  std::vector<double> expected(run.memory(TensorId::x).size());
  each_product(c.shape, [&](auto x, auto w, auto y) {
    expected.at(x) += run.memory(TensorId::y).at(y) * run.memory(TensorId::w).at(w);
  });
  run.run();
  for (std::size_t x = 0; x < expected.size(); ++x) EXPECT_NEAR(run.memory(TensorId::x).at(x), expected[x], 1e-12) << x;
}

TEST_P(ConvolutionGraph, BackwardWeightsIsTheFormula) {
  const Convolution c = small_convolution(Direction::backward_weights, GetParam());
  const OperationGraph graph = operation_graph(c);
  Interpreter run(graph);
  for (const TensorId id : {TensorId::x, TensorId::y}) randomise(run.memory(id), static_cast<std::uint64_t>(id));
  std::vector<double> expected(run.memory(TensorId::w).size());
  each_product(c.shape, [&](auto x, auto w, auto y) {
    expected.at(w) += run.memory(TensorId::y).at(y) * run.memory(TensorId::x).at(x);
  });
  run.run();
  for (std::size_t w = 0; w < expected.size(); ++w) EXPECT_NEAR(run.memory(TensorId::w).at(w), expected[w], 1e-12) << w;
}

INSTANTIATE_TEST_SUITE_P(Groups, ConvolutionGraph, ::testing::Values(1, 2));

TEST(OperationGraph, OnlyTheLastResultHasMemoryAndIntermediatesAreFloat32) {
  Convolution c = small_convolution(Direction::forward, 1);
  c.type = Type::bf16;
  c.bias = true;
  c.activation = nn::Activation::relu;
  const OperationGraph graph = operation_graph(c);
  EXPECT_EQ(bound_ids(graph), (std::vector<std::int64_t>{1, 2, 4, 3}));  // x, w, bias, y
  for (const GraphTensor& tensor : graph.tensors) {
    EXPECT_EQ(tensor.is_virtual, tensor.id >= static_cast<std::int64_t>(TensorId::intermediate));
    EXPECT_EQ(tensor.type, tensor.is_virtual ? Type::fp32 : Type::bf16);
  }
}

TEST(OperationGraph, StatisticsAreFloat32VectorsOfATensorThatIsWritten) {
  Convolution c = small_convolution(Direction::forward, 1);
  c.type = Type::bf16;
  c.statistics = true;
  const OperationGraph graph = operation_graph(c);
  EXPECT_EQ(bound_ids(graph), (std::vector<std::int64_t>{1, 2, 3, 6, 7}));  // x, w, y, sum, squares
  ASSERT_EQ(graph.nodes.size(), 2U);
  EXPECT_EQ(graph.nodes[1].kind, NodeKind::statistics);
  EXPECT_EQ(graph.nodes[1].first, graph.nodes[0].output);
  EXPECT_EQ(graph.tensors.at(static_cast<std::size_t>(graph.nodes[1].first)).type, Type::bf16);
  for (const TensorId id : {TensorId::sum, TensorId::squares}) {
    const GraphTensor& tensor = tensor_of(graph, id);
    EXPECT_EQ(tensor.type, Type::fp32);
    EXPECT_EQ(tensor.dims, (std::array<std::int64_t, 4>{1, 6, 1, 1}));
    EXPECT_EQ(tensor.strides, (std::array<std::int64_t, 4>{6, 1, 6, 6}));
    EXPECT_FALSE(tensor.is_virtual);
  }
}

TEST(OperationGraph, RefusesStatisticsOfFloat32OfBackwardAndBehindAnActivationOrAnAddend) {
  Convolution good = small_convolution(Direction::forward, 1);
  good.type = Type::fp16;
  good.statistics = true;
  EXPECT_NO_THROW((void)operation_graph(good));
  Convolution c = good;
  c.type = Type::fp32;
  EXPECT_THROW((void)operation_graph(c), std::invalid_argument);
  c = good;
  c.direction = Direction::backward_data;
  EXPECT_THROW((void)operation_graph(c), std::invalid_argument);
  c = good;
  c.addend = true;
  EXPECT_THROW((void)operation_graph(c), std::invalid_argument);
  c = good;
  c.bias = true;
  c.activation = nn::Activation::relu;
  EXPECT_THROW((void)operation_graph(c), std::invalid_argument);
}

TEST(OperationGraph, IdsAreUniqueAndEveryNodeReadsWhatIsWrittenBefore) {
  Convolution c = small_convolution(Direction::forward, 1);
  c.bias = c.addend = true;
  c.activation = nn::Activation::tanh;
  const OperationGraph graph = operation_graph(c);
  std::vector<std::int64_t> ids;
  for (const GraphTensor& tensor : graph.tensors) ids.push_back(tensor.id);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  ASSERT_EQ(graph.nodes.size(), 4U);
  for (std::size_t i = 1; i < graph.nodes.size(); ++i) EXPECT_EQ(graph.nodes[i].first, graph.nodes[i - 1].output);
  EXPECT_EQ(graph.tensors[static_cast<std::size_t>(graph.nodes.back().output)].id,
            static_cast<std::int64_t>(TensorId::y));
}

TEST(OperationGraph, SixteenBitGradientsAreCastWhenFloat32IsWanted) {
  Convolution c = small_convolution(Direction::backward_weights, 1);
  c.type = Type::fp16;
  EXPECT_TRUE(operation_graph(c).casts_weight_gradient);
  EXPECT_EQ(tensor_of(operation_graph(c), TensorId::w).type, Type::fp16);
  c.weight_gradient = Type::fp16;
  EXPECT_FALSE(operation_graph(c).casts_weight_gradient);
  c.type = c.weight_gradient = Type::fp32;
  EXPECT_FALSE(operation_graph(c).casts_weight_gradient);
}

TEST(OperationGraph, RefusesShapesThatDoNotFitAndFusionsOfBackward) {
  Convolution c = small_convolution(Direction::forward, 1);
  c.shape.output.height += 1;
  EXPECT_THROW((void)operation_graph(c), std::invalid_argument);
  c = small_convolution(Direction::forward, 3);  // 4 channels
  EXPECT_THROW((void)operation_graph(c), std::invalid_argument);
  c = small_convolution(Direction::backward_data, 1);
  c.bias = true;
  EXPECT_THROW((void)operation_graph(c), std::invalid_argument);
}

}  // namespace
}  // namespace troupe::gpu
