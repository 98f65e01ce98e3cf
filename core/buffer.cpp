#include "core/buffer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace troupe::core {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Large arenas use huge pages: exchanges stream through them, and 4 KiB pages cost a TLB miss every 1,024 floats.
constexpr std::size_t page_for(std::size_t bytes) noexcept { return bytes >= 2 * kHugePage ? kHugePage : kAlignment; }

tl::unexpected<Error> out_of_memory(std::size_t bytes) {
  return fail(
      Errc::out_of_memory,
      fmt::format("cannot allocate {} bytes of memory: use a smaller model, a smaller batch or fewer workers", bytes));
}

}  // namespace

Slice slice_of(std::size_t floats, std::size_t rank, std::size_t ranks) {
  if (rank >= ranks) throw std::invalid_argument("slice of a vector: rank is not below ranks");
  const std::size_t units = align_floats(floats) / kAlignmentFloats;
  const std::size_t share = units / ranks;
  const std::size_t longer = units % ranks;  // the first ranks take one unit more
  const std::size_t first = rank * share + std::min(rank, longer);
  const std::size_t last = first + share + (rank < longer ? 1 : 0);
  const std::size_t begin = std::min(first * kAlignmentFloats, floats);
  const std::size_t end = std::min(last * kAlignmentFloats, floats);
  return {begin, end - begin};
}

Result<void*> HostAllocator::allocate(std::size_t bytes) {
  const std::size_t alignment = page_for(bytes);
  if (bytes > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) - alignment)
    return out_of_memory(bytes);
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;  // aligned_alloc needs a multiple
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) return out_of_memory(bytes);
  if (alignment == kHugePage) ::madvise(memory, rounded, MADV_HUGEPAGE);  // a hint: a refusal costs only speed
  std::memset(memory, 0, rounded);
  return memory;
}

void HostAllocator::deallocate(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }

Result<Buffer> Buffer::allocate(Allocator& allocator, std::size_t floats) {
  if (floats == 0) return Buffer{};
  if (floats > std::numeric_limits<std::size_t>::max() / sizeof(float))
    return out_of_memory(std::numeric_limits<std::size_t>::max());
  Result<void*> memory = allocator.allocate(floats * sizeof(float));
  if (!memory) return tl::unexpected(std::move(memory.error()));
  return Buffer{allocator, static_cast<float*>(*memory), floats};
}

Result<Buffer> Buffer::allocate(Allocator& allocator, std::size_t floats, std::string_view purpose) {
  auto buffer = allocate(allocator, floats);
  if (!buffer) buffer.error().message = fmt::format("{}: {}", purpose, buffer.error().message);
  return buffer;
}

Buffer::Buffer(Allocator& allocator, float* data, std::size_t size) noexcept
    : allocator_(&allocator), data_(data), size_(size) {}

Buffer::Buffer(Buffer&& other) noexcept
    : allocator_(std::exchange(other.allocator_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  Buffer taken(std::move(other));  // first, so that self-assignment keeps the memory
  std::swap(allocator_, taken.allocator_);
  std::swap(data_, taken.data_);
  std::swap(size_, taken.size_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) allocator_->deallocate(data_, size_ * sizeof(float));
}

}  // namespace troupe::core
