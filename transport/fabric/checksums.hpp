/// Checksums of device memory that a FabricEndpoint has under way. They end on a thread of the device; the endpoint's thread takes them.
///
/// Thread-safe. `wake` ends the sleep of the endpoint's thread; it is called from any thread until drain() has returned.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/devices/device_checksum.hpp"
#include "transport/memory_view.hpp"

namespace troupe::transport {

class Checksums {
 public:
  enum class Id : std::uint64_t {};
  struct Ended {
    Id id;
    core::Result<std::uint64_t> sum;
  };

  /// `device` may be null: then there are none.
  Checksums(std::shared_ptr<core::DeviceChecksum> device, std::function<void()> wake);

  [[nodiscard]] bool available() const noexcept { return device_ != nullptr; }
  /// The memory is lent until take() or drain() returns this sum. REQUIRES available() and device memory of more than 240 bytes.
  [[nodiscard]] Id begin(ConstMemoryView memory);
  /// Those that have ended since the last call.
  [[nodiscard]] std::vector<Ended> take();
  /// Waits until none is under way, then as take(). A sum cannot be cancelled: only the device's work is waited for, never a peer.
  [[nodiscard]] std::vector<Ended> drain();

 private:
  /// Shared with the callbacks of the device.
  struct State {
    std::function<void()> wake;
    std::mutex mutex;
    std::condition_variable ended_one;
    std::vector<Ended> ended;  // guarded by mutex, as below
    std::size_t under_way = 0;
    std::uint64_t next = 1;
  };
  const std::shared_ptr<core::DeviceChecksum> device_;
  const std::shared_ptr<State> state_;
};

}  // namespace troupe::transport
