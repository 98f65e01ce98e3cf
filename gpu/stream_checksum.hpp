/// core::DeviceChecksum over any Device: a stream and a thread, which waits for the stream. The thread is made at the first sum, the stream and the
/// memory by prepare() or then.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "core/buffer.hpp"
#include "core/devices/device_checksum.hpp"
#include "gpu/device/device.hpp"

namespace troupe::gpu {

class StreamChecksum final : public core::DeviceChecksum {
 public:
  explicit StreamChecksum(std::shared_ptr<Device> device);
  StreamChecksum(const StreamChecksum&) = delete;
  StreamChecksum& operator=(const StreamChecksum&) = delete;
  ~StreamChecksum() override;

  /// Takes now what a sum of up to `bytes` needs, so that none of those fails for want of memory. Before the first sum. Errors: the device's.
  [[nodiscard]] core::Result<void> prepare(std::size_t bytes);

  void sum(const std::byte* device, std::size_t bytes, Done done) override;

 private:
  struct Sum {
    const std::byte* data;
    std::size_t bytes;
    Done done;
  };
  static constexpr std::size_t kMost = 64;  // sums that begin together

  void run();
  /// Enqueues the sums, at most kMost. REQUIRES the thread, or that there is none yet; as all below it.
  [[nodiscard]] core::Result<void> begin(const std::deque<Sum>& sums);
  [[nodiscard]] core::Result<void> make_room(std::size_t words);

  const std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;  // of the thread, made by prepare() or its first sum, as the buffers
  core::Buffer scratch_;            // shared by the sums, which follow each other on the stream
  core::Buffer results_;            // kMost words on the device
  core::Buffer pinned_;             // the same on the host
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Sum> waiting_;  // guarded by mutex_
  bool stop_ = false;        // guarded by mutex_
  std::thread thread_;       // started with mutex_ held
};

}  // namespace troupe::gpu
