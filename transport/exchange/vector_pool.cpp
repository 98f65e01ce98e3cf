#include "transport/exchange/vector_pool.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace troupe::exchange {

struct VectorPool::Shelf {
  explicit Shelf(core::Allocator& of) : memory(of) {}

  core::Allocator& memory;
  std::mutex mutex;
  std::vector<core::Buffer> free;  // the oldest first
  std::size_t free_floats = 0;
  std::size_t lent = 0;
  std::size_t lent_floats = 0;
  std::size_t most_lent = 0;  // at once
  std::size_t made = 0;
};

VectorPool::VectorPool(core::Allocator& memory) : shelf_(std::make_shared<Shelf>(memory)) {}

core::Result<VectorPool::Loan> VectorPool::take(std::size_t floats) {
  Loan loan;
  if (floats == 0) return loan;
  auto& shelf = *shelf_;
  const std::lock_guard lock(shelf.mutex);
  shelf.free.reserve(shelf.lent + shelf.free.size() + 1);  // a loan's destructor must not throw
  auto best = shelf.free.end();
  for (auto it = shelf.free.begin(); it != shelf.free.end(); ++it)
    if (it->size() >= floats && it->size() / 2 <= floats && (best == shelf.free.end() || it->size() < best->size()))
      best = it;
  if (best != shelf.free.end()) {
    loan.buffer_ = std::move(*best);
    shelf.free.erase(best);
    shelf.free_floats -= loan.buffer_.size();
  } else {
    // What is of no use now makes room first.
    const auto most = std::max(shelf.most_lent, shelf.lent_floats + floats);
    auto unused = shelf.free.begin();
    while (unused != shelf.free.end() && shelf.lent_floats + shelf.free_floats + floats > most)
      shelf.free_floats -= (unused++)->size();
    shelf.free.erase(shelf.free.begin(), unused);
    auto buffer = core::Buffer::allocate(shelf.memory, floats);
    if (!buffer) return tl::unexpected(std::move(buffer.error()));
    loan.buffer_ = std::move(*buffer);
    ++shelf.made;
  }
  ++shelf.lent;
  shelf.lent_floats += loan.buffer_.size();
  shelf.most_lent = std::max(shelf.most_lent, shelf.lent_floats);
  loan.shelf_ = shelf_;
  loan.size_ = floats;
  return loan;
}

std::size_t VectorPool::made() const {
  const std::lock_guard lock(shelf_->mutex);
  return shelf_->made;
}

std::size_t VectorPool::floats() const {
  const std::lock_guard lock(shelf_->mutex);
  return shelf_->free_floats + shelf_->lent_floats;
}

VectorPool::Loan::Loan(Loan&& other) noexcept
    : shelf_(std::move(other.shelf_)), buffer_(std::move(other.buffer_)), size_(std::exchange(other.size_, 0)) {}

VectorPool::Loan& VectorPool::Loan::operator=(Loan&& other) noexcept {
  Loan taken(std::move(other));  // moved first, so self-assignment keeps the vector
  std::swap(shelf_, taken.shelf_);
  std::swap(buffer_, taken.buffer_);
  std::swap(size_, taken.size_);
  return *this;
}

VectorPool::Loan::~Loan() {
  if (!shelf_) return;
  const std::lock_guard lock(shelf_->mutex);
  --shelf_->lent;
  shelf_->lent_floats -= buffer_.size();
  shelf_->free_floats += buffer_.size();
  shelf_->free.push_back(std::move(buffer_));
}

}  // namespace troupe::exchange
