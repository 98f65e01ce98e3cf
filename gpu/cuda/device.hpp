/// The Device of CUDA, cuDNN and cuBLASLt. Thread-safe.
#pragma once

#include <memory>
#include <mutex>

#include "gpu/cuda/memory.hpp"
#include "gpu/cuda/stream.hpp"
#include "gpu/device/device.hpp"

namespace troupe::gpu {

class CudaDevice final : public Device {
 public:
  /// Errc::config: there is no such device, or a library is missing.
  [[nodiscard]] static core::Result<std::shared_ptr<CudaDevice>> make(int ordinal);
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() override;

  [[nodiscard]] const DeviceInfo& info() const noexcept override { return info_; }
  [[nodiscard]] core::Allocator& memory() noexcept override { return memory_; }
  [[nodiscard]] core::Allocator& pinned() noexcept override { return pinned_; }
  /// CUDA's peer access, from this device to the other.
  [[nodiscard]] core::Result<bool> reach(Device& peer) override;
  /// CUDA's IPC.
  [[nodiscard]] core::Result<std::shared_ptr<core::DeviceSharing>> sharing() override;
  [[nodiscard]] core::Result<std::unique_ptr<Stream>> make_stream() override;
  [[nodiscard]] core::Result<std::unique_ptr<Event>> make_event() override;
  [[nodiscard]] core::Result<std::vector<std::unique_ptr<ConvolutionPlan>>> plans(const Convolution& convolution,
                                                                                  std::size_t workspace) override;
  [[nodiscard]] core::Result<std::vector<std::unique_ptr<MatrixPlan>>> plans(const MatrixProduct& product,
                                                                             std::size_t workspace) override;
  [[nodiscard]] core::Result<std::unique_ptr<ConvolutionPlan>> plan(const Convolution& convolution,
                                                                    std::size_t workspace,
                                                                    const std::string& engine) override;
  [[nodiscard]] core::Result<std::unique_ptr<MatrixPlan>> plan(const MatrixProduct& product, std::size_t workspace,
                                                               const std::string& engine) override;
  [[nodiscard]] bool is_measurable() const noexcept override { return true; }
  /// cuDNN 9.19 has engines that say nothing of tensor cores, and whose gradients of weights are as far off as TF32's.
  [[nodiscard]] bool has_exact_engines() const noexcept override { return false; }
  [[nodiscard]] core::Result<double> seconds_between(const Event& first, const Event& second) override;

 private:
  CudaDevice(std::shared_ptr<CudaContext> context, std::shared_ptr<const CudaLibraries> libraries, DeviceInfo info);
  [[nodiscard]] core::Result<void> make_handles();

  std::shared_ptr<CudaContext> context_;
  std::shared_ptr<const CudaLibraries> libraries_;
  DeviceInfo info_;
  CudaMemory memory_;
  CudaPinned pinned_;
  std::mutex planning_;  // one plan at a time: the handles below serve one thread
  CudnnTarget target_;
  cublasLtHandle_t cublas_ = nullptr;
};

/// "13.0", of CUDA's number of a version.
[[nodiscard]] std::string version_text(int version);
/// Why cudaGetDeviceCount() failed with a driver of this version.
[[nodiscard]] std::string no_devices_text(cudaError_t status, int driver);

/// "GPU-01234567-89ab-cdef-0123-456789abcdef", as nvidia-smi writes it.
[[nodiscard]] std::string uuid_text(const cudaUUID_t& uuid);

}  // namespace troupe::gpu
