#include "transport/exchange/scratch.hpp"

#include <map>
#include <new>
#include <stdexcept>
#include <utility>

#include "core/kernels.hpp"

namespace troupe::exchange {

struct Scratch::Blocks {
  struct Free {
    core::Allocator* memory = nullptr;
    std::size_t bytes = 0;
    void operator()(std::byte* block) const noexcept {
      if (memory)
        memory->deallocate(block, bytes);
      else
        ::operator delete (block, std::align_val_t{core::kAlignment});
    }
  };
  using Block = std::unique_ptr<std::byte, Free>;

  [[nodiscard]] Block block_at(std::byte* data, std::size_t size) const { return {data, {memory, size}}; }
  [[nodiscard]] Block make_block(std::size_t size) const {
    if (!memory)
      return block_at(static_cast<std::byte*>(::operator new (size, std::align_val_t{core::kAlignment})), size);
    auto made = memory->allocate(size);
    if (made) return block_at(static_cast<std::byte*>(*made), size);
    if (made.error().code == core::Errc::out_of_memory) throw std::bad_alloc();
    throw core::KernelsFailed(made.error());
  }

  core::Allocator* memory = nullptr;  // null: plain memory, which is not zeroed

  std::multimap<std::size_t, Block> free;  // by bytes
  std::size_t bytes = 0;                   // including lent blocks
  std::size_t made = 0;
};

Scratch::Scratch() : blocks_(std::make_shared<Blocks>()) {}
Scratch::Scratch(core::Allocator& memory) : Scratch() { blocks_->memory = &memory; }

std::size_t Scratch::bytes() const noexcept { return blocks_->bytes; }
std::size_t Scratch::made() const noexcept { return blocks_->made; }

Scratch::Piece Scratch::take(std::size_t bytes) {
  Piece piece;
  if (bytes == 0) return piece;
  piece.blocks_ = blocks_;
  auto& free = blocks_->free;
  auto found = free.lower_bound(bytes);
  if (found == free.end()) {
    // The largest block is too small: a larger one replaces it.
    if (!free.empty()) {
      blocks_->bytes -= free.rbegin()->first;
      free.erase(std::prev(free.end()));
    }
    found = free.emplace(bytes, blocks_->make_block(bytes));
    blocks_->bytes += bytes;
    ++blocks_->made;
  }
  piece.size_ = found->first;
  piece.data_ = found->second.release();
  free.erase(found);
  return piece;
}

Scratch::Piece::Piece(Piece&& other) noexcept
    : blocks_(std::move(other.blocks_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      used_(std::exchange(other.used_, 0)) {}

Scratch::Piece& Scratch::Piece::operator=(Piece&& other) noexcept {
  Piece taken(std::move(other));  // moved first, so self-assignment keeps the block
  std::swap(blocks_, taken.blocks_);
  std::swap(data_, taken.data_);
  std::swap(size_, taken.size_);
  std::swap(used_, taken.used_);
  return *this;
}

Scratch::Piece::~Piece() {
  if (data_) blocks_->free.emplace(size_, blocks_->block_at(data_, size_));
}

std::byte* Scratch::Piece::cut_bytes(std::size_t bytes) {
  if (bytes > size_ - used_) throw std::logic_error("scratch: a piece is too small for what is cut from it");
  return data_ + std::exchange(used_, used_ + bytes);
}

}  // namespace troupe::exchange
