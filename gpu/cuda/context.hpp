/// One CUDA device of this process: which it is, whether it still works, and the error of a failed call. Shared by all that a CudaDevice makes.
/// Thread-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <source_location>
#include <string>

#include "core/error.hpp"

namespace troupe::gpu {

/// The error of a call: operation, CUDA's text, file and line. Errc::out_of_memory when device memory ran out, else Errc::io.
[[nodiscard]] core::Error cuda_error(cudaError_t status, const char* operation,
                                     const std::source_location& where = std::source_location::current());

/// Whether CUDA says that no further call of this process on the device can work.
[[nodiscard]] bool is_lost(cudaError_t status) noexcept;

class CudaContext {
 public:
  explicit CudaContext(int ordinal) noexcept : ordinal_(ordinal) {}

  [[nodiscard]] int ordinal() const noexcept { return ordinal_; }

  /// Makes the device the calling thread's current one: before every call of CUDA or of a library. Fails once the device is lost.
  [[nodiscard]] core::Result<void> enter();
  /// The same for destructors: a failure shows at the next call.
  void enter_quietly() noexcept { (void)cudaSetDevice(ordinal_); }

  /// Success, or the error of the call. An error after which CUDA works no more marks the device as lost: every later enter() reports it.
  [[nodiscard]] core::Result<void> check(cudaError_t status, const char* operation,
                                         const std::source_location& where = std::source_location::current());
  /// An error of a library. What CUDA reports of the device at this moment counts more: libraries only say that something failed.
  [[nodiscard]] core::Error library_error(core::Error error);

 private:
  void lose(const std::string& message);

  const int ordinal_;
  std::atomic<bool> lost_{false};
  std::mutex mutex_;
  std::string reason_;  // guarded by mutex_
};

}  // namespace troupe::gpu
