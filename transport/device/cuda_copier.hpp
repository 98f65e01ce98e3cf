/// Copies between the host and one CUDA device. Each direction has its own stream and thread, so both directions run at once. Only the
/// module troupe_cuda.so contains this code.
///
/// Only these threads call CUDA, so callers keep their current device. The threads wait for events, not callbacks: callbacks do not run
/// when the context has an error, and every copy must end.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "transport/device/device_copier.hpp"

namespace troupe::transport {

/// Page-locked memory that every device can access.
class PinnedAllocator final : public core::Allocator {
 public:
  explicit PinnedAllocator(int device) noexcept : device_(device) {}
  [[nodiscard]] core::MemorySpace space() const noexcept override { return core::MemorySpace::host_pinned; }
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override;
  void deallocate(void* memory, std::size_t bytes) noexcept override;

 private:
  const int device_;  // the memory belongs to this device's context
};

/// Runs the copies of one direction in the order of add(). Owns a thread and a stream. Thread-safe.
class CudaLane {
 public:
  CudaLane(int device, cudaMemcpyKind direction) : device_(device), direction_(direction), thread_([this] { run(); }) {}
  CudaLane(const CudaLane&) = delete;
  CudaLane& operator=(const CudaLane&) = delete;
  /// Waits for all copies.
  ~CudaLane();
  void add(void* to, const void* from, std::size_t bytes, DeviceCopier::Done done);

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
    DeviceCopier::Done done;
    cudaEvent_t event = nullptr;
  };
  void run();
  [[nodiscard]] cudaError_t begin(Copy& copy);
  void end(Copy copy, cudaError_t result);
  void end_oldest(std::deque<Copy>& begun);

  const int device_;
  const cudaMemcpyKind direction_;
  cudaStream_t stream_ = nullptr;   // used by the thread only, like events_
  std::deque<cudaEvent_t> events_;  // idle events
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Copy> waiting_;  // guarded by mutex_
  bool stop_ = false;         // guarded by mutex_
  std::thread thread_;
};

class CudaCopier final : public DeviceCopier {
 public:
  /// Errc::config when there is no such device.
  [[nodiscard]] static core::Result<std::shared_ptr<DeviceCopier>> make(int device);
  explicit CudaCopier(int device);
  [[nodiscard]] core::Allocator& pinned() noexcept override { return pinned_; }
  void to_host(std::byte* host, const std::byte* device, std::size_t bytes, Done done) override;
  void to_device(std::byte* device, const std::byte* host, std::size_t bytes, Done done) override;
  [[nodiscard]] bool is_known_to_libraries() const noexcept override { return true; }
  void enter() const noexcept override { (void)cudaSetDevice(device_); }

 private:
  const int device_;
  PinnedAllocator pinned_;
  CudaLane to_host_;
  CudaLane to_device_;
};

}  // namespace troupe::transport
