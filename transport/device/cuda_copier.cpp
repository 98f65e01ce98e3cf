#include "transport/device/cuda_copier.hpp"

#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

/// Sets the calling thread's current device for this object's lifetime.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) noexcept {
    known_ = cudaGetDevice(&before_) == cudaSuccess;
    (void)cudaSetDevice(device);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() {
    if (known_) (void)cudaSetDevice(before_);
  }

 private:
  int before_ = 0;
  bool known_ = false;
};

}  // namespace

core::Result<void*> PinnedAllocator::allocate(std::size_t bytes) {
  const CurrentDevice current(device_);
  void* memory = nullptr;
  if (const auto error = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable); error != cudaSuccess)
    return core::fail(core::Errc::out_of_memory,
                      fmt::format("CUDA cannot lock {} bytes of host memory ({}): have fewer messages under way", bytes,
                                  cudaGetErrorString(error)));
  std::memset(memory, 0, bytes);
  return memory;
}

void PinnedAllocator::deallocate(void* memory, std::size_t /*bytes*/) noexcept { (void)cudaFreeHost(memory); }

CudaLane::~CudaLane() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CudaLane::add(void* to, const void* from, std::size_t bytes, DeviceCopier::Done done) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({to, from, bytes, std::move(done)});
  changed_.notify_all();
}

cudaError_t CudaLane::begin(Copy& copy) {
  if (!stream_)
    if (const auto error = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); error != cudaSuccess)
      return error;
  if (!events_.empty()) {
    copy.event = events_.back();
    events_.pop_back();
  } else if (const auto error = cudaEventCreateWithFlags(&copy.event, cudaEventBlockingSync | cudaEventDisableTiming);
             error != cudaSuccess) {
    return error;
  }
  if (const auto error = cudaMemcpyAsync(copy.to, copy.from, copy.bytes, direction_, stream_); error != cudaSuccess)
    return error;
  const auto recorded = cudaEventRecord(copy.event, stream_);
  if (recorded != cudaSuccess) (void)cudaStreamSynchronize(stream_);  // the copy may still use its memory
  return recorded;
}

void CudaLane::end(Copy copy, cudaError_t result) {
  if (copy.event) events_.push_back(copy.event);
  if (result == cudaSuccess) return copy.done({});
  (void)cudaGetLastError();  // clears the error: the next call must not report it
  copy.done(core::fail(core::Errc::io, fmt::format("CUDA cannot copy {} bytes {} device {}: {}", copy.bytes,
                                                   direction_ == cudaMemcpyDeviceToHost ? "from" : "to", device_,
                                                   cudaGetErrorString(result))));
}

void CudaLane::end_oldest(std::deque<Copy>& begun) {
  Copy oldest = std::move(begun.front());
  begun.pop_front();
  const auto result = cudaEventSynchronize(oldest.event);
  end(std::move(oldest), result);
}

void CudaLane::run() {
  (void)cudaSetDevice(device_);  // on failure the first copy reports the error
  std::deque<Copy> begun, added;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || !waiting_.empty() || !begun.empty(); });
      if (waiting_.empty() && begun.empty()) break;
      added.swap(waiting_);
    }
    // Begins all copies before it waits for the first: the stream always has the next copy.
    for (Copy& copy : added) {
      const auto error = begin(copy);
      if (error == cudaSuccess) {
        begun.push_back(std::move(copy));
        continue;
      }
      while (!begun.empty()) end_oldest(begun);  // copies end in the order of the stream
      end(std::move(copy), error);
    }
    added.clear();
    if (!begun.empty()) end_oldest(begun);
  }
  for (cudaEvent_t event : events_) (void)cudaEventDestroy(event);
  if (stream_) (void)cudaStreamDestroy(stream_);
}

CudaCopier::CudaCopier(int device)
    : device_(device),
      pinned_(device),
      to_host_(device, cudaMemcpyDeviceToHost),
      to_device_(device, cudaMemcpyHostToDevice) {}

core::Result<std::shared_ptr<DeviceCopier>> CudaCopier::make(int device) {
  int devices = 0;
  if (const auto error = cudaGetDeviceCount(&devices); error != cudaSuccess)
    return core::fail(core::Errc::config, fmt::format("CUDA finds no device: {}", cudaGetErrorString(error)));
  if (device < 0 || device >= devices)
    return core::fail(core::Errc::config,
                      fmt::format("there is no CUDA device {}: this machine has {}", device, devices));
  return std::make_shared<CudaCopier>(device);
}

void CudaCopier::to_host(std::byte* host, const std::byte* device, std::size_t bytes, Done done) {
  to_host_.add(host, device, bytes, std::move(done));
}

void CudaCopier::to_device(std::byte* device, const std::byte* host, std::size_t bytes, Done done) {
  to_device_.add(device, host, bytes, std::move(done));
}

}  // namespace troupe::transport
