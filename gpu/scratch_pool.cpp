#include "gpu/scratch_pool.hpp"

#include <utility>

namespace troupe::gpu {
namespace {

core::Result<void> grow(core::Buffer& buffer, core::Allocator& memory, std::size_t bytes) {
  const std::size_t floats = core::align_floats((bytes + sizeof(float) - 1) / sizeof(float));
  if (buffer.size() >= floats) return {};
  auto allocated = core::Buffer::allocate(memory, floats, "scratch memory of a kernel");
  if (!allocated) return tl::unexpected(std::move(allocated.error()));
  buffer = std::move(*allocated);
  return {};
}

}  // namespace

ScratchPool::Loan::~Loan() {
  if (!scratch_) return;
  const std::lock_guard lock(pool_->mutex_);
  pool_->free_.push_back(std::move(scratch_));
}

std::unique_ptr<ScratchPool::Scratch> ScratchPool::next() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return std::make_unique<Scratch>();
  auto scratch = std::move(free_.back());
  free_.pop_back();
  return scratch;
}

core::Result<ScratchPool::Loan> ScratchPool::take(std::size_t device_bytes, std::size_t pinned_bytes) {
  Loan loan(*this, next());
  if (auto grown = grow(loan->device, device_.memory(), device_bytes); !grown)
    return tl::unexpected(std::move(grown.error()));
  if (auto grown = grow(loan->pinned, device_.pinned(), pinned_bytes); !grown)
    return tl::unexpected(std::move(grown.error()));
  return loan;
}

core::Result<ScratchPool::Loan> ScratchPool::take_staging() {
  Loan loan(*this, next());
  if (!loan->staging) {
    auto staging = Staging::make(device_, Staging::kLargestPiece);
    if (!staging) return tl::unexpected(std::move(staging.error()));
    loan->staging = std::move(*staging);
  }
  return loan;
}

}  // namespace troupe::gpu
