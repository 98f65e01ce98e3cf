/// One stream for each thread and device: a thread's replicas and its kernels are ordered without events. While a step gives out a bucket of
/// gradients the thread has another one (Instead), because its own is full of the rest of backward. Thread-safe.
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

  /// While it lives `stream` is the calling thread's in place of its own. Destroyed by the same thread. REQUIRES that mine() was called before.
  class Instead {
   public:
    Instead(ThreadStreams& streams, std::shared_ptr<Stream> stream);
    Instead(const Instead&) = delete;
    Instead& operator=(const Instead&) = delete;
    ~Instead();

   private:
    ThreadStreams& streams_;
    std::shared_ptr<Stream> own_;
  };

 private:
  /// The calling thread's stream becomes `stream`; returns the one before.
  [[nodiscard]] std::shared_ptr<Stream> exchange(std::shared_ptr<Stream> stream);

  Device& device_;
  std::mutex mutex_;
  std::map<std::thread::id, std::shared_ptr<Stream>> streams_;
};

}  // namespace troupe::gpu
