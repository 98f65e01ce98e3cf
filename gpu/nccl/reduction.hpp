/// core::DeviceReduction by NCCL, for any Device: one communicator, one stream and one thread, which waits for the library. Sums run one after
/// the other. A communicator is aborted, never destroyed: a peer may be lost.
///
/// Tested with a stand-in for NCCL and the host's device only.
#pragma once

#include <memory>

#include "core/devices/device_reduction.hpp"
#include "gpu/device/device.hpp"
#include "gpu/nccl/library.hpp"

namespace troupe::gpu {

class NcclReduction final : public core::DeviceReduction {
 public:
  NcclReduction(std::shared_ptr<Device> device, std::shared_ptr<const NcclLibrary> library);
  NcclReduction(const NcclReduction&) = delete;
  NcclReduction& operator=(const NcclReduction&) = delete;
  /// Aborts. A thread that waits in NCCL for members that never join is left behind: NCCL cannot end that wait.
  ~NcclReduction() override;

  [[nodiscard]] core::Result<std::string> make_group() override;
  void join(const std::string& group, std::size_t rank, std::size_t members, Done done) override;
  [[nodiscard]] std::size_t members() const noexcept override;
  void sum(core::Span vector, Done done) override;
  void abort(const core::Error& why) override;
  [[nodiscard]] core::Result<void> check() override;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the thread
};

}  // namespace troupe::gpu
