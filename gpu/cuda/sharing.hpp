/// Memory of a CUDA device that other processes of the host map: CUDA's IPC. Not run on a device yet; what it calls is the runtime's public API.
/// Thread-safe.
///
/// The order of work is the host's: a process waits for its stream before it tells another one, so no event crosses processes. Handles work
/// between processes that see both devices, under one driver and one IPC namespace; the open of any other one fails. CUDA does not say how long
/// an opened allocation is: the caller has that from its owner.
#pragma once

#include <memory>
#include <string>

#include "core/devices/device_sharing.hpp"
#include "gpu/cuda/memory.hpp"

namespace troupe::gpu {

class CudaSharing final : public core::DeviceSharing {
 public:
  explicit CudaSharing(std::shared_ptr<CudaContext> context);
  CudaSharing(const CudaSharing&) = delete;
  CudaSharing& operator=(const CudaSharing&) = delete;
  ~CudaSharing() override;

  [[nodiscard]] core::Allocator& memory() noexcept override;
  [[nodiscard]] core::Result<std::string> handle_of(void* allocation) override;
  [[nodiscard]] core::Result<std::shared_ptr<void>> open(const std::string& handle, std::size_t bytes) override;

 private:
  class Blocks;
  [[nodiscard]] core::Result<std::shared_ptr<void>> open_here(void* address);

  const std::shared_ptr<CudaContext> context_;
  const std::shared_ptr<Blocks> blocks_;  // shared with mappings of this process
};

}  // namespace troupe::gpu
