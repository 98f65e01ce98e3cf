/// Streams, events and captured steps of a CUDA device.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "gpu/cuda/context.hpp"
#include "gpu/cuda/kernels/launch.hpp"
#include "gpu/cuda/plans.hpp"
#include "gpu/device/device.hpp"

namespace troupe::gpu {

/// What the streams of one device share. Thread-safe: it does not change.
struct CudaLibraries {
  std::shared_ptr<const CudnnLibrary> cudnn;
  std::shared_ptr<const CublasLibrary> cublas;
  int multiprocessors = 0;
};

class CudaEvent final : public Event {
 public:
  CudaEvent(std::shared_ptr<CudaContext> context, cudaEvent_t raw) noexcept : context_(std::move(context)), raw_(raw) {}
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() override;
  [[nodiscard]] cudaEvent_t raw() const noexcept { return raw_; }

 private:
  std::shared_ptr<CudaContext> context_;
  cudaEvent_t raw_;
};

class CudaGraph final : public StepGraph {
 public:
  CudaGraph(std::shared_ptr<CudaContext> context, cudaGraphExec_t raw) noexcept
      : context_(std::move(context)), raw_(raw) {}
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  ~CudaGraph() override;
  [[nodiscard]] cudaGraphExec_t raw() const noexcept { return raw_; }

 private:
  std::shared_ptr<CudaContext> context_;
  cudaGraphExec_t raw_;
};

/// A non-blocking stream. It has its own handles of cuDNN and cuBLASLt, because a handle serves one thread at a time; they are made when a
/// plan is first run, or before a capture, in which they could not be made. Thread rule: one thread at a time.
class CudaStream final : public Stream {
 public:
  [[nodiscard]] static core::Result<std::unique_ptr<CudaStream>> make(std::shared_ptr<CudaContext> context,
                                                                      std::shared_ptr<const CudaLibraries> libraries);
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() override;

  core::Result<void> copy_to_device(void* device, const void* pinned, std::size_t bytes) override;
  core::Result<void> copy_to_host(void* pinned, const void* device, std::size_t bytes) override;
  core::Result<void> copy(void* to, const void* from, std::size_t bytes) override;
  core::Result<void> zero(void* device, std::size_t bytes) override;
  core::Result<void> launch(const Kernel& kernel) override;
  core::Result<void> run(const ConvolutionPlan& plan, const ConvolutionOperands& operands, void* workspace) override;
  core::Result<void> run(const MatrixPlan& plan, const MatrixOperands& operands, void* workspace) override;
  core::Result<void> record(Event& event) override;
  core::Result<void> wait(Event& event) override;
  core::Result<void> synchronize() override;
  core::Result<void> begin_capture() override;
  [[nodiscard]] core::Result<std::unique_ptr<StepGraph>> end_capture() override;
  core::Result<void> launch(const StepGraph& graph) override;
  [[nodiscard]] void* native() noexcept override { return stream_; }
  void push_range(const char* name) noexcept override;
  void pop_range() noexcept override;

 private:
  CudaStream(std::shared_ptr<CudaContext> context, std::shared_ptr<const CudaLibraries> libraries) noexcept
      : context_(std::move(context)), libraries_(std::move(libraries)) {}
  [[nodiscard]] core::Result<void> copy_bytes(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                              const char* operation);
  [[nodiscard]] core::Result<void> make_handles();

  std::shared_ptr<CudaContext> context_;
  std::shared_ptr<const CudaLibraries> libraries_;
  cudaStream_t stream_ = nullptr;
  cudnnHandle_t cudnn_ = nullptr;
  cublasLtHandle_t cublas_ = nullptr;
  bool capturing_ = false;
};

}  // namespace troupe::gpu
