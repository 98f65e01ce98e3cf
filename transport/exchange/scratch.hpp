/// Memory that reductions work in beside their vectors, kept from one to the next: pages that are there already, and not zeroed anew.
/// It keeps as many blocks as were in use at once, none larger than was asked for. One thread, but pieces may outlive it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/buffer.hpp"

namespace troupe::exchange {

class Scratch {
 public:
  /// A block on loan, cut into vectors from its beginning on; back with its end. Contents are anything. Move-only.
  class Piece;

  Scratch();

  /// Throws std::bad_alloc.
  [[nodiscard]] Piece take(std::size_t bytes);
  /// Of all blocks, lent ones included.
  [[nodiscard]] std::size_t bytes() const noexcept;
  /// Blocks made so far: a steady state makes none.
  [[nodiscard]] std::size_t made() const noexcept;

  /// What cut<T>(count) takes of a piece.
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

  /// The next `count`, aligned to core::kAlignment. REQUIRES that there is room.
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
