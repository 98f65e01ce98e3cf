/// Arenas without their padding: what travels between hosts. Blocked layouts round channels up, which costs a small convolutional network
/// a tenth of its bytes. A Packing knows which floats of an arena are parameters, as ranges, and copies those of a slice densely, and
/// back. Padding is zero and stays as it is. Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <vector>

#include "core/kernels.hpp"

namespace troupe::exchange {

class Packing {
 public:
  /// Of an arena in which what is not zero is a parameter: nn::Layout::from_canonical of ones makes one.
  explicit Packing(core::ConstSpan marks);

  [[nodiscard]] std::size_t arena_floats() const noexcept { return arena_floats_; }
  /// Floats that a slice [offset, offset + count) has when it is packed. REQUIRES that it lies in the arena.
  [[nodiscard]] std::size_t packed(std::size_t offset, std::size_t count) const;
  /// REQUIRES dense.size() == packed(offset, slice.size()).
  void pack(core::ConstSpan slice, std::size_t offset, core::Span dense) const;
  void unpack(core::ConstSpan dense, std::size_t offset, core::Span slice) const;

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
