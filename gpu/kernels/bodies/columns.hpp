/// Block bodies that reduce [rows, columns] along the rows, in two launches: blocks reduce chunks of rows to scratch [chunks, columns], and
/// then the chunks to one row. The cut into chunks depends on the shape alone, sums run in a fixed order: the same bits on every device.
///
/// A block body: kThreads threads; `blocks()`; `kPhases` phases with a barrier after each. A thread of a phase reads what other threads
/// wrote to Shared in earlier phases, never in the same one. Shared is undefined at the start of a block. Thread rule: plain values.
#pragma once

#include "gpu/kernels/bodies/numbers.hpp"
#include "gpu/kernels/row_chunks.hpp"

namespace troupe::gpu {

/// The threads of a block as x · y: x over groups of kLanes columns, a power of two, y over rows.
template <int kLanes>
struct ColumnTiles {
  static constexpr int kThreads = 256;
  static constexpr int kMostX = 32;
  static constexpr int kFinalY = 16;  // of the last sum

  std::int64_t columns;
  std::int64_t tiles;
  int x_bits = 0;

  ColumnTiles(std::int64_t all_columns, int most_x) : columns(all_columns) {
    const std::int64_t groups = ceil_div(columns, kLanes);
    while ((1 << x_bits) < most_x && (1 << x_bits) < groups) ++x_bits;
    tiles = ceil_div(groups, x_threads());
  }
  [[nodiscard]] TROUPE_HOST_DEVICE int x_threads() const { return 1 << x_bits; }
  [[nodiscard]] TROUPE_HOST_DEVICE int y_threads() const { return kThreads >> x_bits; }
  [[nodiscard]] TROUPE_HOST_DEVICE int final_y() const { return smaller(kFinalY, y_threads()); }
  [[nodiscard]] TROUPE_HOST_DEVICE int x(int thread) const { return thread & (x_threads() - 1); }
  [[nodiscard]] TROUPE_HOST_DEVICE int y(int thread) const { return thread >> x_bits; }
  /// The first column of a thread's group.
  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t column(std::int64_t tile, int thread) const {
    return (tile * x_threads() + x(thread)) * kLanes;
  }
};

/// Calls use(fetch(row)) for the rows first, first + step, … below end, in this order; what kAtOnce rows need is fetched before the first of
/// them is used. A compiler would not do that: between two rows it sees the end of the loop.
template <int kAtOnce, class Fetch, class Use>
TROUPE_HOST_DEVICE inline void for_rows(std::int64_t first, std::int64_t end, std::int64_t step, const Fetch& fetch,
                                        const Use& use) {
  std::int64_t row = first;
  for (; row + (kAtOnce - 1) * step < end; row += kAtOnce * step) {
    decltype(fetch(row)) fetched[kAtOnce];
    TROUPE_UNROLL
    for (int k = 0; k < kAtOnce; ++k) fetched[k] = fetch(row + k * step);
    TROUPE_UNROLL
    for (int k = 0; k < kAtOnce; ++k) use(fetched[k]);
  }
  for (; row < end; row += step) use(fetch(row));
}

/// Sums of Source::kValues values for each column. A Source has kLanes, kRowsAtOnce, Column begin(column) (what it needs to know of the
/// columns), fetch(row, column) (what it reads) and add(Column, what fetch returned, Lanes<kLanes> (&sums)[kValues]).
template <class Source>
struct ColumnSumsBody {
  static constexpr int kLanes = Source::kLanes;
  static constexpr int kValues = Source::kValues;
  static constexpr int kThreads = ColumnTiles<kLanes>::kThreads;
  static constexpr int kPhases = 3;
  struct Shared {
    float sums[kValues][kLanes][kThreads];  // lanes outside: neighbouring threads touch neighbouring banks
  };

  Source source;
  RowChunks rows;
  ColumnTiles<kLanes> tiles;
  float* out[kValues];  // [chunks, columns]

  [[nodiscard]] std::int64_t blocks() const { return tiles.tiles * rows.chunks; }
  TROUPE_HOST_DEVICE void phase(int phase, std::int64_t block, int thread, Shared& shared) const {
    const std::int64_t chunk = block / tiles.tiles;
    const std::int64_t tile = block % tiles.tiles;
    if (phase == 0) add_rows(chunk, tile, thread, shared);
    if (phase == 1) fold(thread, shared);
    if (phase == 2) finish(chunk, tile, thread, shared);
  }

 private:
  TROUPE_HOST_DEVICE void add_rows(std::int64_t chunk, std::int64_t tile, int thread, Shared& shared) const {
    const std::int64_t column = tiles.column(tile, thread);
    Lanes<kLanes> sums[kValues] = {};
    if (column < tiles.columns) {
      const auto known = source.begin(column);
      const std::int64_t end = rows.end(chunk);
      for_rows<Source::kRowsAtOnce>(
          rows.begin(chunk) + tiles.y(thread), end, tiles.y_threads(),
          [&](std::int64_t row) { return source.fetch(row, column); },
          [&](const auto& fetched) { source.add(known, fetched, sums); });
    }
    TROUPE_UNROLL
    for (int value = 0; value < kValues; ++value) {
      TROUPE_UNROLL
      for (int lane = 0; lane < kLanes; ++lane) shared.sums[value][lane][thread] = sums[value][lane];
    }
  }
  /// Thread (x, y) of the first final_y() adds y + final_y(), y + 2 final_y(), …: each sum is touched by one thread.
  TROUPE_HOST_DEVICE void fold(int thread, Shared& shared) const {
    if (tiles.y(thread) >= tiles.final_y()) return;
    const int step = tiles.final_y() << tiles.x_bits;
    for (int value = 0; value < kValues; ++value)
      for (int lane = 0; lane < kLanes; ++lane) {
        float sum = shared.sums[value][lane][thread];
        for (int other = thread + step; other < kThreads; other += step) sum = sum + shared.sums[value][lane][other];
        shared.sums[value][lane][thread] = sum;
      }
  }
  TROUPE_HOST_DEVICE void finish(std::int64_t chunk, std::int64_t tile, int thread, Shared& shared) const {
    const int lane = thread >> tiles.x_bits;
    if (lane >= kLanes) return;
    const std::int64_t column = tiles.column(tile, thread) + lane;
    if (column >= tiles.columns) return;
    for (int value = 0; value < kValues; ++value) {
      float sum = 0;
      for (int y = 0; y < tiles.final_y(); ++y)
        sum = sum + shared.sums[value][lane][(y << tiles.x_bits) + tiles.x(thread)];
      out[value][chunk * tiles.columns + column] = sum;
    }
  }
};

struct NothingKnown {};

template <class T, int kColumnLanes>
struct TensorSource {
  static constexpr int kLanes = kColumnLanes;
  static constexpr int kValues = 1;
  static constexpr int kRowsAtOnce = 4;
  const T* x;  // [rows, columns]
  std::int64_t columns;
  [[nodiscard]] TROUPE_HOST_DEVICE NothingKnown begin(std::int64_t) const { return {}; }
  [[nodiscard]] TROUPE_HOST_DEVICE Packed<T, kLanes> fetch(std::int64_t row, std::int64_t column) const {
    return gpu::fetch<kLanes>(x + row * columns + column);
  }
  TROUPE_HOST_DEVICE void add(NothingKnown, const Packed<T, kLanes>& fetched, Lanes<kLanes> (&sums)[1]) const {
    const auto lanes = lanes_of(fetched);
    TROUPE_UNROLL
    for (int l = 0; l < kLanes; ++l) sums[0][l] = sums[0][l] + lanes[l];
  }
};

/// The scratch of a first launch.
template <int kSourceValues>
struct ChunkSource {
  static constexpr int kLanes = 1;
  static constexpr int kValues = kSourceValues;
  static constexpr int kRowsAtOnce = 8;
  static constexpr int kMostX = 8;  // few columns for each block, many rows: there are few of them
  const float* x[kValues];          // [chunks, columns]
  std::int64_t columns;
  struct Values {
    float v[kValues];
  };
  [[nodiscard]] TROUPE_HOST_DEVICE NothingKnown begin(std::int64_t) const { return {}; }
  [[nodiscard]] TROUPE_HOST_DEVICE Values fetch(std::int64_t row, std::int64_t column) const {
    Values values;
    TROUPE_UNROLL
    for (int value = 0; value < kValues; ++value) values.v[value] = x[value][row * columns + column];
    return values;
  }
  TROUPE_HOST_DEVICE void add(NothingKnown, const Values& fetched, Lanes<1> (&sums)[kValues]) const {
    TROUPE_UNROLL
    for (int value = 0; value < kValues; ++value) sums[value][0] = sums[value][0] + fetched.v[value];
  }
};

}  // namespace troupe::gpu
