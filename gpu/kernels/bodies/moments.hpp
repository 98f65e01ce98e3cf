/// Block bodies for the mean and the variance of each column of [rows, columns], in two launches as columns.hpp has them. A thread sums its
/// rows relative to its first one, so nothing cancels; parts are joined by their means (Chan et al. 1979). Thread rule: plain values.
#pragma once

#include "gpu/kernels/bodies/batch_norm.hpp"
#include "gpu/kernels/bodies/columns.hpp"

namespace troupe::gpu {

struct Moment {
  float count;
  float mean;
  float squares;  // Σ (x − mean)²
};

/// Joins the parts part_of(i), i = first, first + step, … below end, in this order. Parts without elements are skipped. It reads each part
/// twice, kAtOnce of them together: the second time, the common mean is known.
template <int kAtOnce = 1, class PartOf>
[[nodiscard]] TROUPE_HOST_DEVICE inline Moment joined(std::int64_t first, std::int64_t end, std::int64_t step,
                                                      const PartOf& part_of) {
  if (first >= end) return {0, 0, 0};
  const float origin = part_of(first).mean;
  float count = 0;
  float offset = 0;
  for_rows<kAtOnce>(first, end, step, part_of, [&](const Moment& part) {
    count = count + part.count;
    offset = offset + part.count * (part.mean - origin);
  });
  if (!(count > 0)) return {0, 0, 0};
  const float mean = origin + offset / count;
  float squares = 0;
  for_rows<kAtOnce>(first, end, step, part_of, [&](const Moment& part) {
    const float distance = part.mean - mean;
    if (part.count > 0) squares = squares + (part.squares + part.count * (distance * distance));
  });
  return {count, mean, squares};
}

/// Chunks of rows: mean and squares [chunks, columns].
template <class T, int kLanes>
struct ChunkMomentsBody {
  static constexpr int kThreads = ColumnTiles<kLanes>::kThreads;
  static constexpr int kPhases = 3;
  static constexpr int kRowsAtOnce = 4;
  struct Shared {
    float mean[kLanes][kThreads];
    float squares[kLanes][kThreads];
  };

  const T* x;
  RowChunks rows;
  ColumnTiles<kLanes> tiles;
  float* mean;
  float* squares;

  [[nodiscard]] std::int64_t blocks() const { return tiles.tiles * rows.chunks; }
  TROUPE_HOST_DEVICE void phase(int phase, std::int64_t block, int thread, Shared& shared) const {
    const std::int64_t chunk = block / tiles.tiles;
    const std::int64_t tile = block % tiles.tiles;
    if (phase == 0) add_rows(chunk, tile, thread, shared);
    if (phase == 1) fold(chunk, thread, shared);
    if (phase == 2) finish(chunk, tile, thread, shared);
  }

 private:
  /// The rows that threads of row y take: begin + y, begin + y + y_threads, …
  [[nodiscard]] TROUPE_HOST_DEVICE float rows_of(std::int64_t chunk, std::int64_t y) const {
    const std::int64_t left = rows.end(chunk) - rows.begin(chunk) - y;
    return left <= 0 ? 0.0f : static_cast<float>(ceil_div(left, tiles.y_threads()));
  }
  TROUPE_HOST_DEVICE void add_rows(std::int64_t chunk, std::int64_t tile, int thread, Shared& shared) const {
    const std::int64_t column = tiles.column(tile, thread);
    const std::int64_t first = rows.begin(chunk) + tiles.y(thread);
    const std::int64_t end = rows.end(chunk);
    Lanes<kLanes> origin{};
    Lanes<kLanes> sum{};
    Lanes<kLanes> squared{};
    if (column < tiles.columns && first < end) {
      origin = load<kLanes>(x + first * tiles.columns + column);
      const std::int64_t step = tiles.y_threads();
      for_rows<kRowsAtOnce>(
          first + step, end, step, [&](std::int64_t row) { return fetch<kLanes>(x + row * tiles.columns + column); },
          [&](const Packed<T, kLanes>& fetched) {
            const auto lanes = lanes_of(fetched);
            TROUPE_UNROLL
            for (int l = 0; l < kLanes; ++l) {
              const float d = lanes[l] - origin[l];
              sum[l] = sum[l] + d;
              squared[l] = squared[l] + d * d;
            }
          });
    }
    const float count = larger(1.0f, rows_of(chunk, tiles.y(thread)));
    TROUPE_UNROLL
    for (int l = 0; l < kLanes; ++l) {
      shared.mean[l][thread] = origin[l] + sum[l] / count;
      const float squares = squared[l] - sum[l] * (sum[l] / count);
      shared.squares[l][thread] = squares < 0 ? 0.0f : squares;  // NaN stays
    }
  }
  TROUPE_HOST_DEVICE Moment part(std::int64_t chunk, int lane, int x_thread, std::int64_t y,
                                 const Shared& shared) const {
    const auto at = static_cast<int>(y << tiles.x_bits) + x_thread;
    return {rows_of(chunk, y), shared.mean[lane][at], shared.squares[lane][at]};
  }
  TROUPE_HOST_DEVICE void fold(std::int64_t chunk, int thread, Shared& shared) const {
    const int y = tiles.y(thread);
    if (y >= tiles.final_y()) return;
    for (int lane = 0; lane < kLanes; ++lane) {
      const Moment all = joined(y, tiles.y_threads(), tiles.final_y(),
                                [&](std::int64_t other) { return part(chunk, lane, tiles.x(thread), other, shared); });
      shared.mean[lane][thread] = all.mean;
      shared.squares[lane][thread] = all.squares;
    }
  }
  TROUPE_HOST_DEVICE void finish(std::int64_t chunk, std::int64_t tile, int thread, const Shared& shared) const {
    const int lane = thread >> tiles.x_bits;
    if (lane >= kLanes) return;
    const std::int64_t column = tiles.column(tile, thread) + lane;
    if (column >= tiles.columns) return;
    const Moment all = joined(0, tiles.final_y(), 1, [&](std::int64_t y) {
      Moment folded = part(chunk, lane, tiles.x(thread), y, shared);
      folded.count = 0;
      for (std::int64_t other = y; other < tiles.y_threads(); other += tiles.final_y())
        folded.count = folded.count + rows_of(chunk, other);
      return folded;
    });
    mean[chunk * tiles.columns + column] = all.mean;
    squares[chunk * tiles.columns + column] = all.squares;
  }
};

/// Where the statistics of a batch go.
struct StatisticsResults {
  float epsilon;
  float* mean;
  float* inverse_deviation;
  float* variance;  // null: not kept
  MoveStatisticsBody running;
  bool moves_running;

  TROUPE_HOST_DEVICE void write(std::int64_t column, const Moment& all, std::int64_t rows) const {
    const float deviation = all.squares / static_cast<float>(rows);
    mean[column] = all.mean;
    inverse_deviation[column] = inverse_root(deviation, epsilon);
    if (variance != nullptr) variance[column] = deviation;
    if (moves_running) running.move(column, all.mean, deviation);
  }
};

/// The chunks' moments to those of the batch.
struct BatchMomentsBody {
  static constexpr int kThreads = ColumnTiles<1>::kThreads;
  static constexpr int kPhases = 2;
  static constexpr int kMostX = 8;
  static constexpr int kPartsAtOnce = 8;
  struct Shared {
    Moment parts[kThreads];
  };

  const float* chunk_mean;  // [chunks, columns]
  const float* chunk_squares;
  RowChunks rows;
  ColumnTiles<1> tiles;
  StatisticsResults results;

  [[nodiscard]] std::int64_t blocks() const { return tiles.tiles; }
  TROUPE_HOST_DEVICE void phase(int phase, std::int64_t tile, int thread, Shared& shared) const {
    const std::int64_t column = tiles.column(tile, thread);
    if (phase == 0) {
      shared.parts[thread] = {0, 0, 0};
      if (column < tiles.columns)
        shared.parts[thread] =
            joined<kPartsAtOnce>(tiles.y(thread), rows.chunks, tiles.y_threads(), [&](std::int64_t chunk) {
              const std::int64_t at = chunk * tiles.columns + column;
              return Moment{static_cast<float>(rows.end(chunk) - rows.begin(chunk)), chunk_mean[at], chunk_squares[at]};
            });
      return;
    }
    if (tiles.y(thread) != 0 || column >= tiles.columns) return;
    const Moment all =
        joined(0, tiles.y_threads(), 1, [&](std::int64_t y) { return shared.parts[(y << tiles.x_bits) + thread]; });
    results.write(column, all, rows.rows);
  }
};

}  // namespace troupe::gpu
