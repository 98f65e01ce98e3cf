/// Reusable memory of reductions beside their vectors, of the host or of an Allocator: the pages are already mapped and not zeroed again. It
/// keeps as many blocks as were in use at once, none larger than the largest request. One thread, but a Piece may outlive the Scratch.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/buffer.hpp"

namespace troupe::exchange {

class Scratch {
 public:
  /// A borrowed block, cut into vectors from its beginning. Its destructor returns the block. Contents are undefined. Move-only.
  class Piece;

  Scratch();
  /// Of the memory in which the vectors are; `memory` outlives the pieces.
  explicit Scratch(core::Allocator& memory);

  /// Throws std::bad_alloc; core::KernelsFailed, if the device of the memory has failed.
  [[nodiscard]] Piece take(std::size_t bytes);
  /// Bytes of all blocks, including lent ones.
  [[nodiscard]] std::size_t bytes() const noexcept;
  /// Blocks allocated so far: constant in a steady state.
  [[nodiscard]] std::size_t made() const noexcept;

  /// Bytes that cut<T>(count) takes of a piece.
  template <class T>
  [[nodiscard]] static constexpr std::size_t room(std::size_t count) noexcept {
    return (count * sizeof(T) + core::kAlignment - 1) / core::kAlignment * core::kAlignment;
  }

 private:
  struct Blocks;
  std::shared_ptr<Blocks> blocks_;
};

class Scratch::Piece {
 public:
  Piece() = default;
  Piece(Piece&& other) noexcept;
  Piece& operator=(Piece&& other) noexcept;
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  ~Piece();

  /// The next `count` elements, aligned to core::kAlignment. REQUIRES enough space.
  template <class T>
  [[nodiscard]] std::span<T> cut(std::size_t count) {
    return {reinterpret_cast<T*>(cut_bytes(room<T>(count))), count};
  }

 private:
  friend class Scratch;
  [[nodiscard]] std::byte* cut_bytes(std::size_t bytes);

  std::shared_ptr<Blocks> blocks_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;  // bytes
  std::size_t used_ = 0;
};

}  // namespace troupe::exchange
