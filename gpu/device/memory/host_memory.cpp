#include "gpu/device/memory/host_memory.hpp"

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace troupe::gpu::host {
namespace {

constexpr std::size_t kDeviceAlignment = 256;

/// The upper 16 bits of a hidden address. Processors refuse such an address, and no number that a kernel is called with looks like one.
constexpr std::uint64_t kHidden = 0x5BAD'0000'0000'0000;
constexpr std::uint64_t kUpper = 0xFFFF'0000'0000'0000;

std::uint64_t translated(std::uint64_t address) noexcept {
  return (address & kUpper) == kHidden ? address & ~kUpper : address;
}

}  // namespace

void* found(const void* address) noexcept {
  return reinterpret_cast<void*>(translated(reinterpret_cast<std::uint64_t>(address)));
}

void find_addresses(void* object, std::size_t bytes) noexcept {
  auto* words = static_cast<std::byte*>(object);
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, words + at, sizeof(word));
    word = translated(word);
    std::memcpy(words + at, &word, sizeof(word));
  }
}

void* hidden(void* memory) noexcept {
  return reinterpret_cast<void*>(reinterpret_cast<std::uint64_t>(memory) | kHidden);
}

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
  if (hides_) memory = hidden(memory);
  live_.emplace(reinterpret_cast<std::uintptr_t>(memory), bytes);
  live_bytes_ += bytes;
  return memory;
}

void HostMemory::deallocate(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return;
  const std::lock_guard lock(mutex_);
  live_.erase(reinterpret_cast<std::uintptr_t>(memory));
  live_bytes_ -= bytes;
  std::free(found(memory));
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
