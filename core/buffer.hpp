/// Aligned memory with one owner, and how a vector is cut at aligned floats. Arenas, shards and staging areas are Buffers; all other code
/// holds spans of them. The Allocator decides the kind of memory (plain, shared, pinned, device). Exchanges read arenas in place, so an
/// arena must be allocated in the right kind of memory from the start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/error.hpp"

namespace troupe::core {

/// 64 bytes: a cache line and an AVX-512 register. Every arena, slice and shard starts at a multiple of it.
inline constexpr std::size_t kAlignment = 64;
inline constexpr std::size_t kAlignmentFloats = kAlignment / sizeof(float);

/// Rounds a count of floats up, so that the next vector in the same memory is aligned too.
[[nodiscard]] constexpr std::size_t align_floats(std::size_t count) noexcept {
  return (count + kAlignmentFloats - 1) / kAlignmentFloats * kAlignmentFloats;
}

/// Part of a flat vector, in floats.
struct Slice {
  std::size_t offset = 0;
  std::size_t count = 0;
  bool operator==(const Slice&) const = default;
};

/// Part of rank `rank` when `floats` floats are cut for `ranks` ranks. The parts are adjacent. Each part but the last non-empty one is a
/// multiple of kAlignmentFloats; parts differ by at most one such unit. With more ranks than units the last ranks get count 0 at offset
/// `floats`. Bug (std::invalid_argument): a rank out of range.
[[nodiscard]] Slice slice_of(std::size_t floats, std::size_t rank, std::size_t ranks);

enum class MemorySpace : std::uint8_t { host, host_shared, host_pinned, device };

/// Allocates and frees memory of one MemorySpace. Thread-safe. Must outlive every Buffer that it made.
class Allocator {
 public:
  virtual ~Allocator() = default;
  [[nodiscard]] virtual MemorySpace space() const noexcept = 0;
  /// `bytes` > 0. The memory is zero-filled and aligned to kAlignment. Error: Errc::out_of_memory.
  [[nodiscard]] virtual Result<void*> allocate(std::size_t bytes) = 0;
  virtual void deallocate(void* memory, std::size_t bytes) noexcept = 0;
};

/// Plain process memory. One instance per process is enough; it has no state.
class HostAllocator final : public Allocator {
 public:
  [[nodiscard]] MemorySpace space() const noexcept override { return MemorySpace::host; }
  [[nodiscard]] Result<void*> allocate(std::size_t bytes) override;
  void deallocate(void* memory, std::size_t bytes) noexcept override;
};

/// Owns `size()` floats of an Allocator. Move-only. Empty after a move or by default.
class Buffer {
 public:
  Buffer() = default;
  /// Errors: the allocator's; Errc::out_of_memory when the number of bytes overflows.
  [[nodiscard]] static Result<Buffer> allocate(Allocator& allocator, std::size_t floats);
  /// The same; the Error names the `purpose` of the memory: "the gradients of lenet".
  [[nodiscard]] static Result<Buffer> allocate(Allocator& allocator, std::size_t floats, std::string_view purpose);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  [[nodiscard]] float* data() noexcept { return data_; }
  [[nodiscard]] const float* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::span<float> view() noexcept { return {data_, size_}; }
  [[nodiscard]] std::span<const float> view() const noexcept { return {data_, size_}; }

 private:
  Buffer(Allocator& allocator, float* data, std::size_t size) noexcept;
  Allocator* allocator_ = nullptr;
  float* data_ = nullptr;
  std::size_t size_ = 0;  // floats
};

}  // namespace troupe::core
