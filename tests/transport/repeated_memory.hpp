/// Memory for tests of messages that are too long for real memory.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <stdexcept>

namespace troupe::transport::testing {

/// A range of many addresses over little memory: it maps one file again and again.
class RepeatedMemory {
 public:
  /// Neither 2^31 nor 2^32 is a multiple of it: a truncated length or offset meets other bytes.
  static constexpr std::size_t kPeriod = (std::size_t{48} << 20) + 4096;

  explicit RepeatedMemory(std::size_t size) : size_((size + kPeriod - 1) / kPeriod * kPeriod) {
    const int file = ::memfd_create("troupe_test", MFD_CLOEXEC);
    void* all = ::mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (file < 0 || ::ftruncate(file, kPeriod) != 0 || all == MAP_FAILED) throw std::runtime_error("no memory");
    data_ = static_cast<std::byte*>(all);
    for (std::size_t at = 0; at < size_; at += kPeriod)
      if (::mmap(data_ + at, kPeriod, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
        throw std::runtime_error("no memory");
    ::close(file);
  }
  ~RepeatedMemory() { ::munmap(data_, size_); }
  RepeatedMemory(const RepeatedMemory&) = delete;
  RepeatedMemory& operator=(const RepeatedMemory&) = delete;

  [[nodiscard]] std::span<std::byte> first(std::size_t size) const { return {data_, size}; }

 private:
  std::size_t size_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace troupe::transport::testing
