#include "transport/exchange/reduce.hpp"

#include <stdexcept>
#include <vector>

namespace troupe::exchange {
namespace {

/// This rank's slice of every arena; empty when the slice is empty.
std::vector<core::Span> slices_of(std::span<const core::Span> arenas, std::size_t rank) {
  if (arenas.empty()) throw std::invalid_argument("exchange in place: no arenas");
  const std::size_t floats = arenas.front().size();
  for (const core::Span& arena : arenas)
    if (arena.size() != floats) throw std::invalid_argument("exchange in place: arenas differ in length");
  const core::Slice slice = core::slice_of(floats, rank, arenas.size());
  std::vector<core::Span> slices;
  if (slice.count == 0) return slices;
  slices.reserve(arenas.size());
  for (const core::Span& arena : arenas) slices.push_back(arena.subspan(slice.offset, slice.count));
  return slices;
}

}  // namespace

void reduce_slice(const core::Kernels& kernels, std::span<const core::Span> arenas, std::size_t rank, float scale) {
  const std::vector<core::Span> slices = slices_of(arenas, rank);
  if (!slices.empty()) kernels.reduce_all(slices, scale);
}

void broadcast_slice(const core::Kernels& kernels, std::span<const core::Span> arenas, std::size_t rank,
                     std::size_t root) {
  if (root >= arenas.size()) throw std::invalid_argument("broadcast in place: root is not one of the ranks");
  const std::vector<core::Span> slices = slices_of(arenas, rank);
  if (!slices.empty()) kernels.broadcast_all(slices, root);
}

}  // namespace troupe::exchange
