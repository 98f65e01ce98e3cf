/// Arenas without their padding, for transfer between hosts. Blocked layouts round channels up, which is a tenth of the bytes of a small
/// convolutional network. A Packing keeps the ranges of floats that are parameters. It copies those of a slice into a dense vector, and
/// back. Padding is zero and is not changed. Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <vector>

#include "core/kernels.hpp"

namespace troupe::exchange {

class Packing {
 public:
  /// `marks`: an arena, not zero exactly where a parameter is, for example nn::Layout::from_canonical of ones.
  explicit Packing(core::ConstSpan marks);

  [[nodiscard]] std::size_t arena_floats() const noexcept { return arena_floats_; }
  /// Packed length of the slice [offset, offset + count), in floats. REQUIRES that it lies in the arena.
  [[nodiscard]] std::size_t packed(std::size_t offset, std::size_t count) const;
  /// REQUIRES dense.size() == packed(offset, slice.size()).
  void pack(core::ConstSpan slice, std::size_t offset, core::Span dense) const;
  void unpack(core::ConstSpan dense, std::size_t offset, core::Span slice) const;
  /// Sets the padding of the slice to zero, and nothing else.
  void clear_padding(std::size_t offset, core::Span slice) const;

 private:
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  template <class Visit>
  void visit(std::size_t offset, std::size_t count, const Visit& range) const;

  std::size_t arena_floats_ = 0;
  std::vector<Range> ranges_;  // ascending
};

}  // namespace troupe::exchange
