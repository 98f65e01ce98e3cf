#include "nn/program/workspace.hpp"

#include <algorithm>
#include <numeric>

#include "core/buffer.hpp"

namespace troupe::nn {

Placement place(std::span<const Lifetime> lifetimes) {
  Placement placement;
  placement.offsets.resize(lifetimes.size());
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) { return lifetimes[i].floats; });

  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t i : order) {
    const Lifetime& mine = lifetimes[i];
    std::size_t offset = 0;
    for (const std::size_t other : placed) {
      const Lifetime& theirs = lifetimes[other];
      if (theirs.last < mine.first || mine.last < theirs.first) continue;
      if (offset + mine.floats <= placement.offsets[other]) break;  // fits before it
      offset = std::max(offset, placement.offsets[other] + core::align_floats(theirs.floats));
    }
    placement.offsets[i] = offset;
    placement.floats = std::max(placement.floats, offset + core::align_floats(mine.floats));
    placed.insert(std::ranges::upper_bound(placed, offset, {}, [&](std::size_t j) { return placement.offsets[j]; }), i);
  }
  return placement;
}

}  // namespace troupe::nn
