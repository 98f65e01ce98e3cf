/// A Device that executes everything on the host: kernels by their bodies, convolutions and products by plain loops. With it the compiler of
/// steps, the replica and every kernel are tested on machines without an accelerator. It checks what a device would not: copies, kernels and
/// plans must name live memory of the right kind, each operand within one allocation, and nothing but copies, kernels and plans may be
/// captured.
///
/// Each description has two engines: "host staged", which needs kHostWorkspace bytes and scribbles over them, and "host direct" without. Like
/// the libraries of a device it refuses (Errc::config) what they do not fuse for every shape: see Device::plans.
#pragma once

#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gpu/device/device.hpp"
#include "gpu/device/host_queue.hpp"
#include "gpu/device/memory/host_memory.hpp"
#include "gpu/device/memory/host_sharing.hpp"

namespace troupe::gpu {

inline constexpr std::size_t kHostWorkspace = 4096;  // bytes

struct HostDeviceOptions {
  std::size_t memory = std::numeric_limits<std::ptrdiff_t>::max();  // bytes of the device
  /// Set: operations are executed later, in a random order that streams and events allow, which follows from this seed. A result that depends
  /// on the seed lacks an event. Pinned memory that is read too early, or written too early, shows as well. Threads of a kernel run
  /// backwards.
  std::optional<std::uint64_t> schedule_seed{};
  /// An operation is executed when the host waits for something that needs it, and no sooner: what the host is told too early, or waits for
  /// without need, shows. Not with schedule_seed.
  bool executes_lazily = false;
  bool fuses_everything = false;  // any bias, addend and activation
  bool sums_statistics = true;    // with a convolution of 16 bits
  bool sums_when_staged = false;  // of the two engines, "host staged" alone does
  bool is_measurable = false;     // by the host's clock: engines are chosen as on a device
  bool mixes_types = true;        // a bias may be added to products of another type than their factors
  bool hides_memory = false;      // code that reads or writes device memory on the host dies, as with a device
  std::string shares = "host";  // memory is mapped by devices, of any process, that share under this name; empty: none
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(const HostDeviceOptions& options = {});
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;
  ~HostDevice() override;

  [[nodiscard]] const DeviceInfo& info() const noexcept override { return info_; }
  [[nodiscard]] core::Allocator& memory() noexcept override { return memory_; }
  [[nodiscard]] core::Allocator& pinned() noexcept override { return pinned_; }
  /// Any other HostDevice, which outlives this one's use of it.
  [[nodiscard]] core::Result<bool> reach(Device& peer) override;
  /// In memory files, which any process of the same user maps.
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
  [[nodiscard]] bool is_measurable() const noexcept override { return options_.is_measurable; }
  [[nodiscard]] bool has_exact_engines() const noexcept override { return true; }
  [[nodiscard]] core::Result<double> seconds_between(const Event& first, const Event& second) override;

  /// Bytes that are allocated now.
  [[nodiscard]] std::size_t live_bytes() const { return memory_.live_bytes(); }
  [[nodiscard]] std::size_t live_pinned_bytes() const { return pinned_.live_bytes(); }

  /// For its streams.
  [[nodiscard]] host::HostQueue& queue() noexcept { return queue_; }
  [[nodiscard]] const host::HostMemory& device_memory() const noexcept { return memory_; }
  /// Whether all of `bytes` bytes belong to one allocation of this device, of one that it reaches, or of another process's that it has mapped.
  [[nodiscard]] bool has_in_reach(const void* memory, std::size_t bytes) const;
  [[nodiscard]] const host::HostMemory& pinned_memory() const noexcept { return pinned_; }
  [[nodiscard]] const HostDeviceOptions& options() const noexcept { return options_; }

 private:
  HostDeviceOptions options_;
  DeviceInfo info_;
  host::HostMemory memory_;
  host::HostMemory pinned_;
  std::shared_ptr<host::SharedRanges> shared_;
  host::HostQueue queue_;
  mutable std::mutex peers_mutex_;
  std::vector<const HostDevice*> peers_;
};

}  // namespace troupe::gpu
