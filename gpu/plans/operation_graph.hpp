/// A Convolution as a graph of operations over tensors: what cuDNN's graph API takes, without its headers. gpu/cuda/ only walks it, so shapes,
/// strides, types and fusions are tested on machines without CUDA. Thread rule: plain values and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/device/products.hpp"

namespace troupe::gpu {

/// Whose memory a tensor is: the ids of the tensors that an execution binds to ConvolutionOperands. Intermediate results have ids from
/// `intermediate` on, and no memory.
enum class TensorId : std::int64_t {
  x = 1,
  w = 2,
  y = 3,
  bias = 4,
  addend = 5,
  sum = 6,
  squares = 7,
  intermediate = 16
};

/// A tensor in the libraries' order of dimensions, which is not the order of memory: activations {batch, channels, height, width}, weights
/// {outputs, channels / groups, kernel, kernel}, bias, sum and squares {1, outputs, 1, 1}. Strides in elements; channels have stride 1.
struct GraphTensor {
  std::int64_t id = 0;
  std::array<std::int64_t, 4> dims{};
  std::array<std::int64_t, 4> strides{};
  Type type = Type::fp32;
  bool is_virtual = false;  // an intermediate result: the library keeps it in registers
};

enum class NodeKind : std::uint8_t {
  convolution_forward,           ///< output y ← x, w
  convolution_backward_data,     ///< output x (dx) ← y (dy), w
  convolution_backward_weights,  ///< output w (dw) ← x, y (dy)
  add,                           ///< output ← first + second; a bias is broadcast
  relu,                          ///< output ← max(first, 0)
  sigmoid,
  tanh,
  statistics,  ///< output ← Σ first, second ← Σ first², over all but the channels
};

/// One operation. A convolution's x, w and y are tensors of these ids, whichever of them it writes; `first`, `second` and `output` are
/// indices of `OperationGraph::tensors`. Arithmetic is float32.
struct GraphNode {
  NodeKind kind = NodeKind::convolution_forward;
  int first = -1;   // convolution: x;  pointwise: the first operand
  int second = -1;  // convolution: w;  add: the second operand;  statistics: the squares
  int output = -1;  // convolution: y;  pointwise: the result;  statistics: the sum
};

/// In the order of execution. Every convolution has the same stride and padding in both directions.
struct OperationGraph {
  std::vector<GraphTensor> tensors;
  std::vector<GraphNode> nodes;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  bool casts_weight_gradient = false;  // see operation_graph()
};

/// The graph of a convolution. Forward: the convolution, then those of + bias, + addend and activation that the description has; what lies
/// between them is float32 and virtual. The statistics are of y, which is no intermediate: it is written too. Backward weights from 16-bit
/// tensors: no library writes float32, so that w has the tensors' type and `casts_weight_gradient` is set when the description wants float32:
/// the device casts afterwards.
/// Bug (std::invalid_argument): shapes that do not fit each other, or a backward direction with a bias, an addend or an
/// activation, or statistics of anything but a forward convolution of 16 bits, perhaps with a bias.
[[nodiscard]] OperationGraph operation_graph(const Convolution& convolution);

/// The ids that an execution binds, in the order of `tensors`.
[[nodiscard]] std::vector<std::int64_t> bound_ids(const OperationGraph& graph);

}  // namespace troupe::gpu
