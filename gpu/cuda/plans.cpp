#include "gpu/cuda/plans.hpp"

#include <stdexcept>

namespace troupe::gpu {
namespace {

constexpr std::size_t kPartAlignment = 256;  // of the parts of a workspace

std::size_t aligned(std::size_t bytes) { return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment; }

}  // namespace

std::size_t CudaConvolutionPlan::cast_bytes(const OperationGraph& graph) {
  if (!graph.casts_weight_gradient) return 0;
  for (const GraphTensor& tensor : graph.tensors)
    if (tensor.id == static_cast<std::int64_t>(TensorId::w)) {
      std::size_t bytes = bytes_of(tensor.type);
      for (const std::int64_t extent : tensor.dims) bytes *= static_cast<std::size_t>(extent);
      return aligned(bytes) + kPartAlignment;  // and what aligns their beginning
    }
  return 0;
}

CudaConvolutionPlan::CudaConvolutionPlan(const Convolution& convolution, std::shared_ptr<const CudnnGraph> graph,
                                         CudnnPlan plan)
    : graph_(std::move(graph)), plan_(std::move(plan)), type_(convolution.type) {
  const OperationGraph operations = operation_graph(convolution);
  ids_ = bound_ids(operations);
  workspace_ = plan_.workspace;
  engine_ = to_string(plan_.engine);
  if (!operations.casts_weight_gradient) return;
  cast_count_ = convolution.shape.weights();
  cast_at_ = aligned(plan_.workspace);
  workspace_ = cast_at_ + static_cast<std::size_t>(cast_count_) * bytes_of(type_);
  engine_ += kCastSuffix;
}

void* CudaConvolutionPlan::gradients_in(void* workspace) const { return static_cast<std::byte*>(workspace) + cast_at_; }

core::Result<void> CudaConvolutionPlan::run(cudnnHandle_t handle, const ConvolutionOperands& operands,
                                            void* workspace) const {
  std::vector<void*> pointers;
  for (const std::int64_t id : ids_) {
    switch (static_cast<TensorId>(id)) {
      case TensorId::x: pointers.push_back(operands.x); break;
      case TensorId::w: pointers.push_back(cast_count_ > 0 ? gradients_in(workspace) : operands.w); break;
      case TensorId::y: pointers.push_back(operands.y); break;
      case TensorId::bias: pointers.push_back(const_cast<void*>(operands.bias)); break;
      case TensorId::addend: pointers.push_back(const_cast<void*>(operands.addend)); break;
      case TensorId::sum: pointers.push_back(operands.sum); break;
      case TensorId::squares: pointers.push_back(operands.squares); break;
      case TensorId::intermediate: throw std::invalid_argument("an intermediate result has no memory");
    }
  }
  const auto& library = plan_.descriptor.library();
  const auto count = static_cast<std::int64_t>(ids_.size());
  const auto pack = CudnnBuilder(library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
                        .set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids_.data())
                        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data())
                        .set_one(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
                        .finish();
  if (!pack) return tl::unexpected(pack.error());
  const auto status = library->execute(handle, plan_.descriptor.raw(), pack->raw());
  if (status != CUDNN_STATUS_SUCCESS) return tl::unexpected(library->error(status, "cudnnBackendExecute"));
  return {};
}

Cast CudaConvolutionPlan::cast(const ConvolutionOperands& operands, void* workspace) const {
  if (cast_count_ == 0) return {};
  return {gradients_in(workspace), operands.w, type_, Type::fp32, cast_count_};
}

}  // namespace troupe::gpu
