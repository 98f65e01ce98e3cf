#include "transport/exchange/scratch.hpp"

#include <map>
#include <new>
#include <stdexcept>
#include <utility>

namespace troupe::exchange {

struct Scratch::Blocks {
  struct Free {
    void operator()(std::byte* block) const noexcept { ::operator delete (block, std::align_val_t{core::kAlignment}); }
  };
  using Block = std::unique_ptr<std::byte, Free>;

  std::multimap<std::size_t, Block> free;  // by bytes
  std::size_t bytes = 0;                   // including lent blocks
  std::size_t made = 0;
};

Scratch::Scratch() : blocks_(std::make_shared<Blocks>()) {}

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
    found = free.emplace(bytes, static_cast<std::byte*>(::operator new (bytes, std::align_val_t{core::kAlignment})));
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
  if (data_) blocks_->free.emplace(size_, Blocks::Block(data_));
}

std::byte* Scratch::Piece::cut_bytes(std::size_t bytes) {
  if (bytes > size_ - used_) throw std::logic_error("scratch: a piece is too small for what is cut from it");
  return data_ + std::exchange(used_, used_ + bytes);
}

}  // namespace troupe::exchange
