#include "transport/device/staging_pool.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

constexpr std::size_t kSmallest = 4 << 10;  // one page: the smallest unit of page-locked memory

}  // namespace

core::Result<StagingPool::Block> StagingPool::take(std::size_t bytes) {
  if (bytes > limit_)
    return core::fail(
        core::Errc::out_of_memory,
        fmt::format("a message of {} bytes does not fit into the {} bytes that device memory is staged through", bytes,
                    limit_));
  const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest));
  if (auto& idle = idle_[size]; !idle.empty()) {
    Block block(idle.back(), {this, size});
    idle.pop_back();
    return block;
  }
  if (held_ + size > limit_) drop_idle();  // idle blocks of other sizes
  if (held_ + size > limit_)
    return core::fail(
        core::Errc::out_of_memory,
        fmt::format("all {} bytes that device memory is staged through are in use: have fewer messages under way",
                    limit_));
  const auto memory = allocator_.allocate(size);
  if (!memory) return tl::unexpected(memory.error());
  held_ += size;
  return Block(static_cast<std::byte*>(*memory), {this, size});
}

void StagingPool::drop_idle() noexcept {
  for (const auto& [size, blocks] : std::exchange(idle_, {}))
    for (std::byte* memory : blocks) {
      allocator_.deallocate(memory, size);
      held_ -= size;
    }
}

}  // namespace troupe::transport
