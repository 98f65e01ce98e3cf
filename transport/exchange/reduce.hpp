/// Exchange in place over mapped arenas: the arithmetic of the `shm` algorithm, for ranks that are threads or processes.
///
///     signal "my arena is ready" · reduce_slice(rank) · signal "my slice is written" · continue when all have signalled
///
/// Each rank sums its 1/N of the vector directly from all arenas, in rank order, and writes the result into all arenas: no copy, no
/// staging. Slices (core::slice_of) do not overlap and begin at aligned floats, so ranks need no lock between the two signals. The number
/// of ranks affects the result only through the sum itself.
///
/// Pure and thread-safe. Cost per rank, N ranks, P floats: reads and writes 4·P bytes each (N arenas · P/N floats), and allocates a list of
/// N spans. Bugs (std::invalid_argument): arenas of unequal length, no arenas, a rank or root out of range.
#pragma once

#include <cstddef>
#include <span>

#include "core/kernels.hpp"

namespace troupe::exchange {

/// In rank's slice: every arena ← scale · Σ arenas, summed in list order. `arenas` is in rank order.
void reduce_slice(const core::Kernels& kernels, std::span<const core::Span> arenas, std::size_t rank, float scale);

/// In rank's slice: every arena ← arenas[root].
void broadcast_slice(const core::Kernels& kernels, std::span<const core::Span> arenas, std::size_t rank,
                     std::size_t root);

}  // namespace troupe::exchange
