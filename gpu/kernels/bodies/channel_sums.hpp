/// Mean and variance of a batch norm from Σ x and Σ x² that the convolution in front of it left (gpu/device/products.hpp), in float32.
///
/// σ² = Σ x² / m − μ² cancels where |μ| is large beside σ: an error of both sums of c · 2⁻²⁴ becomes a relative error of σ² of at most
/// 3c · 2⁻²⁴ · (1 + μ²/σ²). c is the longest chain of additions of the engine's sums; errors that do not all have one sign make it √c. So
///   - a channel with σ² < μ² · kCancels, |μ| above 32 σ, is not taken from the sums: the block reads its column of x again and adds up
///     relative to the mean, as ChunkMomentsBody does. No cancellation is left. It costs time, in channels that hardly vary; no sum that is
///     all zeros is among them. For all others the bound is 3c · 2⁻²⁴ · (1 + 2¹⁰), 1.8c · 10⁻⁴;
///   - convolutions are asked for sums in 16 bits only. Rounding x has changed it by up to u · |x| there, u being 2⁻⁸ or 2⁻¹¹, and σ² by up to
///     2u · √(1 + μ²/σ²) of it, which is more than the above where √(1 + μ²/σ²) · 3c · 2⁻²⁴ < 2u: in fp16 at 32 σ for c below 170. In float32
///     there is no such excuse: the statistics stay those of ChunkMomentsBody.
/// An x that is NaN or infinite makes the deviation NaN, so that a run that diverges shows it. Thread rule: plain values.
#pragma once

#include "gpu/kernels/bodies/moments.hpp"

namespace troupe::gpu {

/// Threads as BatchMomentsBody has them, few columns for each block. The first phase reads x where the sums do not do.
template <class T>
struct ChannelSumsBody {
  static constexpr int kThreads = ColumnTiles<1>::kThreads;
  static constexpr int kPhases = 2;
  static constexpr int kMostX = BatchMomentsBody::kMostX;
  static constexpr int kRowsAtOnce = 4;
  static constexpr float kCancels = 0x1p-10f;
  struct Shared {
    Moment parts[kThreads];
  };

  const T* x;  // [rows, columns]
  const float* sum;
  const float* squares;
  std::int64_t rows;
  ColumnTiles<1> tiles;
  StatisticsResults results;

  [[nodiscard]] std::int64_t blocks() const { return tiles.tiles; }
  TROUPE_HOST_DEVICE void phase(int phase, std::int64_t tile, int thread, Shared& shared) const {
    const std::int64_t column = tiles.column(tile, thread);
    if (phase == 0) {
      shared.parts[thread] = {0, 0, 0};
      if (column < tiles.columns && cancels(of_sums(column))) shared.parts[thread] = of_rows(column, tiles.y(thread));
      return;
    }
    if (tiles.y(thread) != 0 || column >= tiles.columns) return;
    Moment all = of_sums(column);
    if (cancels(all))
      all = joined(0, tiles.y_threads(), 1, [&](std::int64_t y) { return shared.parts[(y << tiles.x_bits) + thread]; });
    results.write(column, all, rows);
  }

 private:
  [[nodiscard]] TROUPE_HOST_DEVICE Moment of_sums(std::int64_t column) const {
    const float count = static_cast<float>(rows);
    const float average = sum[column] / count;
    return {count, average, squares[column] - sum[column] * average};
  }
  /// Also where rounding made σ² negative. NaN does not.
  [[nodiscard]] TROUPE_HOST_DEVICE static bool cancels(const Moment& all) {
    return all.squares < all.count * (all.mean * all.mean) * kCancels;
  }
  /// Of the rows first, first + y_threads(), …
  [[nodiscard]] TROUPE_HOST_DEVICE Moment of_rows(std::int64_t column, std::int64_t first) const {
    if (first >= rows) return {0, 0, 0};
    const float origin = sum[column] / static_cast<float>(rows);
    float count = 0;
    float offset = 0;
    float squared = 0;
    for_rows<kRowsAtOnce>(
        first, rows, tiles.y_threads(), [&](std::int64_t row) { return to_float(x[row * tiles.columns + column]); },
        [&](float value) {
          const float d = value - origin;
          count = count + 1;
          offset = offset + d;
          squared = squared + d * d;
        });
    const float rest = squared - offset * (offset / count);
    return {count, origin + offset / count, rest < 0 ? 0.0f : rest};  // NaN stays
  }
};

}  // namespace troupe::gpu
