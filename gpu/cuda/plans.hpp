/// Plans of convolutions and products on a CUDA device. Read-only once made: several streams may run one at a time.
#pragma once

#include <memory>
#include <string>

#include "gpu/cuda/cublas/matrix.hpp"
#include "gpu/cuda/cudnn/graph.hpp"
#include "gpu/device/device.hpp"

namespace troupe::gpu {

/// A cuDNN plan. When cuDNN computes 16-bit weight gradients of which float32 is wanted, they stay behind cuDNN's own workspace, and a kernel
/// casts them: the engine's name then ends with " + cast".
class CudaConvolutionPlan final : public ConvolutionPlan {
 public:
  /// The bytes that such gradients take of the workspace; 0: none are cast.
  [[nodiscard]] static std::size_t cast_bytes(const OperationGraph& graph);

  CudaConvolutionPlan(const Convolution& convolution, std::shared_ptr<const CudnnGraph> graph, CudnnPlan plan);
  [[nodiscard]] std::size_t workspace() const noexcept override { return workspace_; }
  [[nodiscard]] std::string engine() const override { return engine_; }

  /// Enqueues the convolution without the cast.
  [[nodiscard]] core::Result<void> run(cudnnHandle_t handle, const ConvolutionOperands& operands,
                                       void* workspace) const;
  /// The kernel that must follow: Cast::count is 0 when there is none.
  [[nodiscard]] Cast cast(const ConvolutionOperands& operands, void* workspace) const;

 private:
  [[nodiscard]] void* gradients_in(void* workspace) const;

  std::shared_ptr<const CudnnGraph> graph_;  // outlives plan_
  CudnnPlan plan_;
  std::vector<std::int64_t> ids_;  // of the tensors that an execution binds
  Type type_;
  std::size_t cast_at_ = 0;      // where in the workspace the 16-bit gradients are
  std::int64_t cast_count_ = 0;  // elements
  std::size_t workspace_ = 0;
  std::string engine_;
};

class CudaMatrixPlan final : public MatrixPlan {
 public:
  explicit CudaMatrixPlan(CublasPlan plan) : plan_(std::move(plan)) {}
  [[nodiscard]] std::size_t workspace() const noexcept override { return plan_.workspace; }
  [[nodiscard]] std::string engine() const override { return plan_.name; }
  [[nodiscard]] const CublasPlan& plan() const noexcept { return plan_; }

 private:
  CublasPlan plan_;
};

inline constexpr std::string_view kCastSuffix = " + cast";

}  // namespace troupe::gpu
