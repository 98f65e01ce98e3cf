/// A device for tests. Its memory is host memory under addresses that only the device can use: on x86-64 they are not valid
/// addresses, so a direct access crashes. Copies complete late, on a thread of the device.
///
/// Thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "core/devices/device_checksum.hpp"
#include "transport/device/device_copier.hpp"
#include "transport/memory_view.hpp"

namespace troupe::transport::testing {

/// The same memory under the device's addresses.
[[nodiscard]] MemoryView on_device(MemoryView host) noexcept;
[[nodiscard]] ConstMemoryView on_device(ConstMemoryView host) noexcept;

class FakeDevice final : public DeviceCopier {
 public:
  FakeDevice();
  ~FakeDevice() override;
  [[nodiscard]] core::Allocator& pinned() noexcept override { return pinned_; }
  void to_host(std::byte* host, const std::byte* device, std::size_t bytes, Done done) override;
  void to_device(std::byte* device, const std::byte* host, std::size_t bytes, Done done) override;

  [[nodiscard]] bool is_known_to_libraries() const noexcept override { return known_; }
  /// Libraries may be given its memory.
  void make_known() noexcept { known_ = true; }
  /// Copies so far.
  [[nodiscard]] unsigned copies() const noexcept { return count_; }

  /// Copies begin but do not complete until release().
  void hold();
  void release();
  /// Every later copy fails with this error.
  void fail(core::Error error);

 private:
  class Pinned final : public core::Allocator {
   public:
    [[nodiscard]] core::MemorySpace space() const noexcept override { return core::MemorySpace::host_pinned; }
    [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override { return host_.allocate(bytes); }
    void deallocate(void* memory, std::size_t bytes) noexcept override { host_.deallocate(memory, bytes); }

   private:
    core::HostAllocator host_;
  };
  struct Copy {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
    Done done;
  };
  void add(Copy copy);
  void run();

  Pinned pinned_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Copy> copies_;
  std::optional<core::Error> error_;
  bool held_ = false;
  bool stop_ = false;
  std::atomic<bool> known_{false};
  std::atomic<unsigned> count_{0};
  std::thread thread_;
};

/// Checksums in a FakeDevice's memory, by the host's function. They end late, on a thread of this object.
class FakeChecksum final : public core::DeviceChecksum {
 public:
  FakeChecksum();
  ~FakeChecksum() override;
  void sum(const std::byte* device, std::size_t bytes, Done done) override;

  /// Sums begin but do not end until release().
  void hold();
  void release();
  /// Every later sum fails with this error.
  void fail(core::Error error);
  /// Sums so far that have begun, and that have ended.
  [[nodiscard]] unsigned begun() const noexcept { return begun_; }
  [[nodiscard]] unsigned ended() const noexcept { return ended_; }

 private:
  struct Sum {
    const std::byte* data;
    std::size_t bytes;
    Done done;
  };
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Sum> sums_;
  std::optional<core::Error> error_;
  bool held_ = false;
  bool stop_ = false;
  std::atomic<unsigned> begun_{0};
  std::atomic<unsigned> ended_{0};
  std::thread thread_;
};

}  // namespace troupe::transport::testing
