#include "gpu/plans/operation_graph.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace troupe::gpu {
namespace {

/// Dense, with channels innermost.
std::array<std::int64_t, 4> channels_last(const std::array<std::int64_t, 4>& dims) {
  const auto [batch, channels, height, width] = dims;
  return {height * width * channels, 1, width * channels, channels};
}

std::array<std::int64_t, 4> dims_of(const TensorShape& shape) {
  return {shape.batch, shape.channels, shape.height, shape.width};
}

void check(const Convolution& convolution) {
  const ConvolutionShape& s = convolution.shape;
  const auto extent = [&](std::int64_t input) { return (input + 2 * s.padding - s.kernel) / s.stride + 1; };
  const bool fits = s.kernel > 0 && s.stride > 0 && s.padding >= 0 && s.groups > 0 && s.input.size() > 0 &&
                    s.input.batch == s.output.batch && s.input.channels % s.groups == 0 && s.output.channels > 0 &&
                    s.output.channels % s.groups == 0 && s.input.height + 2 * s.padding >= s.kernel &&
                    s.input.width + 2 * s.padding >= s.kernel && s.output.height == extent(s.input.height) &&
                    s.output.width == extent(s.input.width);
  const bool plain = !convolution.bias && !convolution.addend && !convolution.activation;
  const bool types = convolution.direction != Direction::backward_weights ||
                     convolution.weight_gradient == Type::fp32 || convolution.weight_gradient == convolution.type;
  const bool sums = !convolution.statistics || (convolution.direction == Direction::forward && !convolution.addend &&
                                                !convolution.activation && convolution.type != Type::fp32);
  if (!fits || !types || !sums || (convolution.direction != Direction::forward && !plain))
    throw std::invalid_argument(fmt::format("no such convolution: {}", to_string(convolution)));
}

NodeKind node_of(nn::Activation activation) {
  switch (activation) {
    case nn::Activation::relu: return NodeKind::relu;
    case nn::Activation::sigmoid: return NodeKind::sigmoid;
    case nn::Activation::tanh: return NodeKind::tanh;
  }
  throw std::invalid_argument("no such activation");
}

/// Adds tensors and nodes; the last result is a tensor of the caller's, those before it are virtual.
class GraphBuilder {
 public:
  explicit GraphBuilder(OperationGraph& graph) : graph_(graph) {}

  int tensor(TensorId id, const std::array<std::int64_t, 4>& dims, Type type) {
    graph_.tensors.push_back({static_cast<std::int64_t>(id), dims, channels_last(dims), type, false});
    return static_cast<int>(graph_.tensors.size()) - 1;
  }

  /// The result of one operation of `left` that are still to come, with this one: the last is y.
  int result(const std::array<std::int64_t, 4>& dims, Type type, int left) {
    if (left == 1) return tensor(TensorId::y, dims, type);
    const int index = tensor(TensorId::intermediate, dims, Type::fp32);
    graph_.tensors.back().id += intermediates_++;
    graph_.tensors.back().is_virtual = true;
    return index;
  }

  void node(NodeKind kind, int first, int second, int output) { graph_.nodes.push_back({kind, first, second, output}); }

 private:
  OperationGraph& graph_;
  std::int64_t intermediates_ = 0;
};

}  // namespace

OperationGraph operation_graph(const Convolution& convolution) {
  check(convolution);
  const ConvolutionShape& s = convolution.shape;
  const Type type = convolution.type;
  const auto x_dims = dims_of(s.input), y_dims = dims_of(s.output);
  const std::array<std::int64_t, 4> w_dims{s.output.channels, s.input.channels / s.groups, s.kernel, s.kernel};

  OperationGraph graph;
  graph.stride = s.stride;
  graph.padding = s.padding;
  GraphBuilder builder(graph);
  const int x = builder.tensor(TensorId::x, x_dims, type);
  const int w = builder.tensor(TensorId::w, w_dims, type);
  if (convolution.direction != Direction::forward) {
    const int y = builder.tensor(TensorId::y, y_dims, type);
    const bool data = convolution.direction == Direction::backward_data;
    builder.node(data ? NodeKind::convolution_backward_data : NodeKind::convolution_backward_weights, x, w, y);
    graph.casts_weight_gradient = !data && convolution.weight_gradient != type;
    return graph;
  }

  int left = 1 + (convolution.bias ? 1 : 0) + (convolution.addend ? 1 : 0) + (convolution.activation ? 1 : 0);
  int value = builder.result(y_dims, type, left);
  builder.node(NodeKind::convolution_forward, x, w, value);
  const auto append = [&](NodeKind kind, int second) {
    const int output = builder.result(y_dims, type, --left);
    builder.node(kind, value, second, output);
    value = output;
  };
  if (convolution.bias) append(NodeKind::add, builder.tensor(TensorId::bias, {1, s.output.channels, 1, 1}, type));
  if (convolution.addend) append(NodeKind::add, builder.tensor(TensorId::addend, y_dims, type));
  if (convolution.activation) append(node_of(*convolution.activation), -1);
  if (convolution.statistics) {
    const std::array<std::int64_t, 4> sum_dims{1, s.output.channels, 1, 1};
    const int sum = builder.tensor(TensorId::sum, sum_dims, Type::fp32);
    builder.node(NodeKind::statistics, value, builder.tensor(TensorId::squares, sum_dims, Type::fp32), sum);
  }
  return graph;
}

std::vector<std::int64_t> bound_ids(const OperationGraph& graph) {
  std::vector<std::int64_t> ids;
  for (const GraphTensor& tensor : graph.tensors)
    if (!tensor.is_virtual) ids.push_back(tensor.id);
  return ids;
}

}  // namespace troupe::gpu
