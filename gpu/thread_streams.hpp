/// One stream for each thread and device: a thread's replicas and its kernels are ordered without events. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "gpu/device/device.hpp"

namespace troupe::gpu {

class ThreadStreams {
 public:
  /// `device` outlives this object and the streams.
  explicit ThreadStreams(Device& device) : device_(device) {}

  /// The calling thread's stream: made by its first call, kept for the threads to come.
  [[nodiscard]] core::Result<std::shared_ptr<Stream>> mine();

 private:
  Device& device_;
  std::mutex mutex_;
  std::map<std::thread::id, std::shared_ptr<Stream>> streams_;
};

}  // namespace troupe::gpu
