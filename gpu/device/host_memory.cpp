#include "gpu/device/host_memory.hpp"

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace troupe::gpu::host {
namespace {

constexpr std::size_t kDeviceAlignment = 256;

}  // namespace

core::Result<void*> HostMemory::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  void* memory = nullptr;
  if (bytes > limit_ - live_bytes_ || ::posix_memalign(&memory, kDeviceAlignment, bytes) != 0)
    return core::fail(
        core::Errc::out_of_memory,
        fmt::format("cannot allocate {} bytes of the device's memory, of which {} of {} are in use: use a "
                    "smaller model, a smaller batch or fewer workers",
                    bytes, live_bytes_, limit_));
  std::memset(memory, 0, bytes);
  live_.emplace(reinterpret_cast<std::uintptr_t>(memory), bytes);
  live_bytes_ += bytes;
  return memory;
}

void HostMemory::deallocate(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return;
  const std::lock_guard lock(mutex_);
  live_.erase(reinterpret_cast<std::uintptr_t>(memory));
  live_bytes_ -= bytes;
  std::free(memory);
}

bool HostMemory::contains(const void* memory, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  const auto next = live_.upper_bound(address);
  if (next == live_.begin()) return false;
  const auto& [begin, size] = *std::prev(next);
  return address - begin <= size && bytes <= size - (address - begin);
}

std::size_t HostMemory::live_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_bytes_;
}

}  // namespace troupe::gpu::host
