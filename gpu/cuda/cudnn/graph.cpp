#include "gpu/cuda/cudnn/graph.hpp"

#include <array>

namespace troupe::gpu {
namespace {

using Raw = cudnnBackendDescriptor_t;

cudnnDataType_t data_type(Type type) {
  switch (type) {
    case Type::fp32: return CUDNN_DATA_FLOAT;
    case Type::bf16: return CUDNN_DATA_BFLOAT16;
    case Type::fp16: return CUDNN_DATA_HALF;
  }
  return CUDNN_DATA_FLOAT;
}

core::Result<CudnnDescriptor> make_tensor(const CudnnTarget& target, const GraphTensor& tensor) {
  return CudnnBuilder(target.library, CUDNN_BACKEND_TENSOR_DESCRIPTOR)
      .set_one(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, tensor.id)
      .set_one(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(tensor.type))
      .set_one(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kTensorAlignment)
      .set_integers(CUDNN_ATTR_TENSOR_DIMENSIONS, tensor.dims)
      .set_integers(CUDNN_ATTR_TENSOR_STRIDES, tensor.strides)
      .set_one(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, tensor.is_virtual)
      .finish();
}

core::Result<CudnnDescriptor> make_convolution(const CudnnTarget& target, const OperationGraph& graph) {
  const std::array<std::int64_t, 2> ones{1, 1}, strides{graph.stride, graph.stride},
      paddings{graph.padding, graph.padding};
  return CudnnBuilder(target.library, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
      .set_one(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set_one(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set_one(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2})
      .set_integers(CUDNN_ATTR_CONVOLUTION_DILATIONS, ones)
      .set_integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides)
      .set_integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, paddings)
      .set_integers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, paddings)
      .finish();
}

/// How cuDNN names the attributes of a convolution in one direction.
struct ConvolutionAttributes {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};

ConvolutionAttributes attributes_of(NodeKind kind) {
  if (kind == NodeKind::convolution_backward_data)
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  if (kind == NodeKind::convolution_backward_weights)
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

cudnnPointwiseMode_t mode_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::relu: return CUDNN_POINTWISE_RELU_FWD;
    case NodeKind::sigmoid: return CUDNN_POINTWISE_SIGMOID_FWD;
    case NodeKind::tanh: return CUDNN_POINTWISE_TANH_FWD;
    default: return CUDNN_POINTWISE_ADD;
  }
}

/// What a pointwise operation computes. relu is asked to pass NaN on, so that it does not hide that a run diverges. cuDNN 9 has no other way to ask
/// for it, calls this one deprecated, and says of few engines that they do (CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP: the slow ones), so that
/// engines are tried (gpu/program/measuring.hpp). A library that refuses the attribute fuses no relu.
core::Result<CudnnDescriptor> make_pointwise(const CudnnTarget& target, NodeKind kind) {
  CudnnBuilder pointwise(target.library, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  pointwise.set_one(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode_of(kind))
      .set_one(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  if (kind == NodeKind::relu)
    pointwise.set_one(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, CUDNN_PROPAGATE_NAN);
  return pointwise.finish();
}

bool is_convolution(NodeKind kind) {
  return kind == NodeKind::convolution_forward || kind == NodeKind::convolution_backward_data ||
         kind == NodeKind::convolution_backward_weights;
}

/// Keeps `made` in `list`, or returns its error.
core::Result<void> keep(core::Result<CudnnDescriptor> made, std::vector<CudnnDescriptor>& list) {
  if (!made) return tl::unexpected(made.error());
  list.push_back(std::move(*made));
  return {};
}

}  // namespace

core::Result<CudnnTarget> CudnnTarget::described(std::shared_ptr<const CudnnLibrary> library, const std::string& json) {
  auto properties = CudnnBuilder(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)
                        .set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                             static_cast<std::int64_t>(json.size()) + 1, json.c_str())
                        .finish();
  if (!properties) return tl::unexpected(properties.error());
  CudnnTarget target;
  target.library = std::move(library);
  target.properties = std::move(*properties);
  return target;
}

core::Result<CudnnGraph> CudnnGraph::build(const CudnnTarget& target, const OperationGraph& graph) {
  CudnnGraph built;
  if (auto added = built.add_tensors(target, graph); !added) return tl::unexpected(added.error());
  for (const GraphNode& node : graph.nodes) {
    auto added = is_convolution(node.kind)           ? built.add_convolution(target, graph, node)
                 : node.kind == NodeKind::statistics ? built.add_statistics(target, node)
                                                     : built.add_pointwise(target, node);
    if (!added) return tl::unexpected(added.error());
  }
  if (auto finished = built.finish(target); !finished) return tl::unexpected(finished.error());
  return built;
}

core::Result<void> CudnnGraph::add_tensors(const CudnnTarget& target, const OperationGraph& graph) {
  for (const GraphTensor& tensor : graph.tensors)
    if (auto kept = keep(make_tensor(target, tensor), tensors_); !kept) return kept;
  return {};
}

core::Result<void> CudnnGraph::add_convolution(const CudnnTarget& target, const OperationGraph& graph,
                                               const GraphNode& node) {
  if (auto kept = keep(make_convolution(target, graph), parts_); !kept) return kept;
  const ConvolutionAttributes names = attributes_of(node.kind);
  const auto tensor = [&](int index) -> const CudnnDescriptor& { return tensors_[static_cast<std::size_t>(index)]; };
  return keep(CudnnBuilder(target.library, names.operation)
                  .set_descriptor(names.convolution, parts_.back())
                  .set_descriptor(names.x, tensor(node.first))
                  .set_descriptor(names.w, tensor(node.second))
                  .set_descriptor(names.y, tensor(node.output))
                  .set_one(names.alpha, CUDNN_TYPE_FLOAT, 1.0F)
                  .set_one(names.beta, CUDNN_TYPE_FLOAT, 0.0F)
                  .finish(),
              operations_);
}

core::Result<void> CudnnGraph::add_pointwise(const CudnnTarget& target, const GraphNode& node) {
  if (auto kept = keep(make_pointwise(target, node.kind), parts_); !kept) return kept;
  CudnnBuilder operation(target.library, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, parts_.back())
      .set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_[static_cast<std::size_t>(node.first)])
      .set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_[static_cast<std::size_t>(node.output)]);
  if (node.second >= 0)
    operation.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensors_[static_cast<std::size_t>(node.second)]);
  return keep(operation.finish(), operations_);
}

core::Result<void> CudnnGraph::add_statistics(const CudnnTarget& target, const GraphNode& node) {
  const auto tensor = [&](int index) -> const CudnnDescriptor& { return tensors_[static_cast<std::size_t>(index)]; };
  return keep(CudnnBuilder(target.library, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR)
                  .set_one(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM)
                  .set_one(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
                  .set_descriptor(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, tensor(node.first))
                  .set_descriptor(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, tensor(node.output))
                  .set_descriptor(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, tensor(node.second))
                  .finish(),
              operations_);
}

core::Result<void> CudnnGraph::finish(const CudnnTarget& target) {
  std::vector<Raw> operations;
  for (const CudnnDescriptor& operation : operations_) operations.push_back(operation.raw());
  CudnnBuilder graph(target.library, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(operations.size()),
            operations.data());
  if (target.handle) graph.set_one(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  auto finished = graph.finish();
  if (!finished) return tl::unexpected(finished.error());
  graph_ = std::move(*finished);
  return {};
}

}  // namespace troupe::gpu
