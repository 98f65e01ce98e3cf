/// Block body that transposes matrices of a batch through a tile, so that reads and writes are both of neighbouring elements. It moves bits.
/// Thread rule: plain values.
#pragma once

#include "gpu/kernels/portable.hpp"

namespace troupe::gpu {

/// to [batch, columns, rows] ← from [batch, rows, columns]. Unit: std::uint16_t or std::uint32_t.
template <class Unit>
struct TransposeBody {
  static constexpr int kTile = 32;
  static constexpr int kThreads = 256;
  static constexpr int kPhases = 2;
  struct Shared {
    Unit tile[kTile][kTile + 1];  // one more: a column of the tile is in different banks
  };

  const Unit* from;
  Unit* to;
  std::int64_t batch;
  std::int64_t rows;
  std::int64_t columns;

  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t row_tiles() const { return ceil_div(rows, std::int64_t{kTile}); }
  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t column_tiles() const { return ceil_div(columns, std::int64_t{kTile}); }
  [[nodiscard]] std::int64_t blocks() const { return batch * row_tiles() * column_tiles(); }

  TROUPE_HOST_DEVICE void phase(int phase, std::int64_t block, int thread, Shared& shared) const {
    const std::int64_t tiles = row_tiles() * column_tiles();
    const std::int64_t first = block / tiles * rows * columns;  // of the matrix
    const std::int64_t first_row = block % tiles / column_tiles() * kTile;
    const std::int64_t first_column = block % tiles % column_tiles() * kTile;
    const int x = thread % kTile;
    for (int y = thread / kTile; y < kTile; y += kThreads / kTile) {
      if (phase == 0) {
        const std::int64_t row = first_row + y;
        const std::int64_t column = first_column + x;
        if (row < rows && column < columns) shared.tile[y][x] = from[first + row * columns + column];
      } else {
        const std::int64_t row = first_row + x;
        const std::int64_t column = first_column + y;
        if (row < rows && column < columns) to[first + column * rows + row] = shared.tile[x][y];
      }
    }
  }
};

}  // namespace troupe::gpu
