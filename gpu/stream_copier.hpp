/// core::DeviceCopier over any Device: a stream and a thread for each direction. The thread waits for the stream, and so uses a core where the
/// device's wait does; the copier of CUDA (transport/device/cuda_copier.hpp) does not.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "core/devices/device_copier.hpp"
#include "gpu/device/device.hpp"

namespace troupe::gpu {

class StreamCopier final : public core::DeviceCopier {
 public:
  explicit StreamCopier(std::shared_ptr<Device> device);
  StreamCopier(const StreamCopier&) = delete;
  StreamCopier& operator=(const StreamCopier&) = delete;
  ~StreamCopier() override;

  [[nodiscard]] core::Allocator& pinned() noexcept override { return device_->pinned(); }
  void to_host(std::byte* host, const std::byte* device, std::size_t bytes, Done done) override;
  void to_device(std::byte* device, const std::byte* host, std::size_t bytes, Done done) override;

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
    Done done;
  };
  /// The copies of one direction.
  class Lane {
   public:
    Lane(Device& device, bool to_host) : device_(device), to_host_(to_host), thread_([this] { run(); }) {}
    ~Lane();
    void add(Copy copy);

   private:
    void run();
    [[nodiscard]] core::Result<void> begin(const Copy& copy);

    Device& device_;
    const bool to_host_;
    std::unique_ptr<Stream> stream_;  // of the thread, made by its first copy
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Copy> waiting_;  // guarded by mutex_
    bool stop_ = false;         // guarded by mutex_
    std::thread thread_;
  };

  const std::shared_ptr<Device> device_;
  Lane to_host_;
  Lane to_device_;
};

}  // namespace troupe::gpu
