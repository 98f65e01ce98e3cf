/// Exchange in place over mapped arenas: the arithmetic of the `shm` algorithm, for ranks that are threads or
/// processes.
///
///     signal "my arena is ready" · reduce_slice(rank) · signal "my slice is written" · go on when all have
///
/// Each rank sums its 1/N of the vector straight from all arenas, in rank order, and writes the result into all of
/// them: no copy, no staging. Slices do not overlap and start at aligned floats, so ranks need no lock between the
/// two signals, and the result does not depend on how many ranks there are other than through the sum itself.
///
/// Pure and thread-safe. Cost per rank, N ranks, P floats: reads and writes 4·P bytes each (N arenas · P/N floats),
/// and allocates a list of N spans. Arenas of unequal length, a rank or root that is not one of them, or none at all
/// are bugs: std::invalid_argument.
#pragma once

#include <cstddef>
#include <span>

#include "core/kernels.hpp"

namespace troupe::transport {

/// Part of a flat vector, in floats.
struct Slice {
  std::size_t offset = 0;
  std::size_t count = 0;
  bool operator==(const Slice&) const = default;
};

/// Rank `rank`'s part of `floats` floats cut for `ranks` ranks. The parts follow each other without gaps; each but
/// the last non-empty one is a multiple of core::kAlignmentFloats, and they differ by at most one such unit. With
/// more ranks than units the last ranks get nothing (count 0 at offset `floats`).
[[nodiscard]] Slice slice_of(std::size_t floats, std::size_t rank, std::size_t ranks);

/// In rank's slice: every arena ← scale · Σ arenas, summed in list order. `arenas` is in rank order.
void reduce_slice(const core::Kernels& kernels, std::span<const core::Span> arenas, std::size_t rank, float scale);

/// In rank's slice: every arena ← arenas[root].
void broadcast_slice(const core::Kernels& kernels, std::span<const core::Span> arenas, std::size_t rank,
                     std::size_t root);

}  // namespace troupe::transport
