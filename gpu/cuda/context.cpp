#include "gpu/cuda/context.hpp"

#include <fmt/format.h>

#include "gpu/cuda/libraries/source_text.hpp"

namespace troupe::gpu {

core::Error cuda_error(cudaError_t status, const char* operation, const std::source_location& where) {
  return {status == cudaErrorMemoryAllocation ? core::Errc::out_of_memory : core::Errc::io,
          fmt::format("CUDA: {} failed: {} ({}, {})", operation, cudaGetErrorString(status), cudaGetErrorName(status),
                      source_text(where))};
}

bool is_lost(cudaError_t status) noexcept {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorExternalDevice:
    case cudaErrorMpsClientTerminated:
    case cudaErrorContextIsDestroyed:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoDevice:
    case cudaErrorSystemNotReady:
    case cudaErrorCudartUnloading:
    case cudaErrorUnknown: return true;
    default: return false;
  }
}

void CudaContext::lose(const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (lost_) return;
  reason_ = message;
  lost_ = true;
}

core::Result<void> CudaContext::enter() {
  if (lost_) {
    const std::lock_guard lock(mutex_);
    return core::fail(core::Errc::io, fmt::format("CUDA: device {} lost: {}", ordinal_, reason_));
  }
  return check(cudaSetDevice(ordinal_), "cudaSetDevice");
}

core::Result<void> CudaContext::check(cudaError_t status, const char* operation, const std::source_location& where) {
  if (status == cudaSuccess) return {};
  (void)cudaGetLastError();  // clears an error that does not stay: the next call must not report it
  auto error = cuda_error(status, operation, where);
  if (is_lost(status)) {
    lose(error.message);
    error.message = fmt::format("CUDA: device {} lost: {}", ordinal_, error.message);
  }
  return tl::unexpected(std::move(error));
}

core::Error CudaContext::library_error(core::Error error) {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaErrorMemoryAllocation) error.code = core::Errc::out_of_memory;
  if (status == cudaSuccess || !is_lost(status)) return error;
  lose(fmt::format("{}; {}", error.message, cudaGetErrorString(status)));
  return {core::Errc::io, fmt::format("CUDA: device {} lost: {}", ordinal_, error.message)};
}

}  // namespace troupe::gpu
