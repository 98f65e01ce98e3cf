/// Memory of one CUDA device, and page-locked memory of the host for copies. Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>

#include "core/buffer.hpp"
#include "gpu/cuda/context.hpp"
#include "gpu/device/block_cache.hpp"

namespace troupe::gpu {

/// Device memory that is kept for later allocations of the process (BlockCache). Zero-filled: allocate() waits for that, on a stream of its
/// own, and for nothing else; so it may be called while a step runs or is captured on another thread.
class CudaMemory final : public core::Allocator {
 public:
  /// Bytes of all kept blocks. What comes and goes while a run steps is small; what measurements and replicas leave other processes may need.
  static constexpr std::size_t kMostKept = std::size_t{256} << 20;
  explicit CudaMemory(std::shared_ptr<CudaContext> context, std::size_t most_kept = kMostKept);
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;
  ~CudaMemory() override;
  [[nodiscard]] core::MemorySpace space() const noexcept override { return core::MemorySpace::device; }
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override;
  /// No work that uses the memory may be under way.
  void deallocate(void* memory, std::size_t bytes) noexcept override;

 private:
  [[nodiscard]] core::Result<void> zero(void* memory, std::size_t bytes);

  std::shared_ptr<CudaContext> context_;
  BlockCache blocks_;
  std::mutex mutex_;
  cudaStream_t stream_ = nullptr;  // guarded by mutex_
};

/// Page-locked memory, readable by every device, that is kept for later allocations of the process (BlockCache): to lock pages takes as long
/// as a small step, and to unlock them waits for the device. Zero-filled. No work that uses the memory may be under way when it is
/// deallocated.
class CudaPinned final : public core::Allocator {
 public:
  explicit CudaPinned(std::shared_ptr<CudaContext> context);
  [[nodiscard]] core::MemorySpace space() const noexcept override { return core::MemorySpace::host_pinned; }
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override;
  void deallocate(void* memory, std::size_t bytes) noexcept override;

 private:
  std::shared_ptr<CudaContext> context_;
  BlockCache blocks_;
};

}  // namespace troupe::gpu
