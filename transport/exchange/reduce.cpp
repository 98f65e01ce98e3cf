#include "transport/exchange/reduce.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace troupe::transport {
namespace {

/// This rank's slice of every arena; empty when the slice is empty.
std::vector<core::Span> slices_of(std::span<const core::Span> arenas, std::size_t rank) {
  if (arenas.empty()) throw std::invalid_argument("exchange in place: no arenas");
  const std::size_t floats = arenas.front().size();
  for (const core::Span& arena : arenas)
    if (arena.size() != floats) throw std::invalid_argument("exchange in place: arenas differ in length");
  const Slice slice = slice_of(floats, rank, arenas.size());
  std::vector<core::Span> slices;
  if (slice.count == 0) return slices;
  slices.reserve(arenas.size());
  for (const core::Span& arena : arenas) slices.push_back(arena.subspan(slice.offset, slice.count));
  return slices;
}

}  // namespace

Slice slice_of(std::size_t floats, std::size_t rank, std::size_t ranks) {
  if (rank >= ranks) throw std::invalid_argument("slice of a vector: rank is not below ranks");
  const std::size_t units = core::align_floats(floats) / core::kAlignmentFloats;
  const std::size_t share = units / ranks;
  const std::size_t longer = units % ranks;  // the first ranks take one unit more
  const std::size_t first = rank * share + std::min(rank, longer);
  const std::size_t last = first + share + (rank < longer ? 1 : 0);
  const std::size_t begin = std::min(first * core::kAlignmentFloats, floats);
  const std::size_t end = std::min(last * core::kAlignmentFloats, floats);
  return {begin, end - begin};
}

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

}  // namespace troupe::transport
