/// The inner loops of HostDevice's convolutions and matrix products: tiles of kTileRows x kTileColumns float32 sums. Sums run in order, each
/// operation rounds once, and so the bits are the same whatever vector instructions the CPU has. Stateless.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/kernels/types.hpp"

namespace troupe::gpu::host {

inline constexpr int kTileRows = 6;
inline constexpr int kTileColumns = 16;
using Tile = float[kTileRows][kTileColumns];

/// The loops for one set of vector instructions.
struct TileLoops {
  /// sums[r] += Σ_d rows[r][d] · panel[d], d < depth, for kTileRows rows; panel [depth, kTileColumns].
  void (*rows)(const float* const* rows, std::int64_t depth, const float* panel, Tile& sums);
  /// The same for one row.
  void (*row)(const float* row, std::int64_t depth, const float* panel, float* sums);
  /// sums[r][c] += Σ a[first][r] · b[second][c] over the pairs of offsets; kTileRows and kTileColumns neighbours.
  void (*outer)(const float* a, const float* b, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs,
                Tile& sums);
};
/// The fastest of this CPU, chosen at the first call.
[[nodiscard]] const TileLoops& tile_loops() noexcept;

/// One element as float; with tf32, rounded to 10 bits of mantissa.
[[nodiscard]] float element(const void* memory, Type type, std::int64_t index, Math math) noexcept;
/// The same for many.
[[nodiscard]] std::vector<float> elements(const void* memory, Type type, std::int64_t count, Math math);
void set_element(void* memory, Type type, std::int64_t index, float value) noexcept;

}  // namespace troupe::gpu::host
