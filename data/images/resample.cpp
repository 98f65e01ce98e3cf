#include "data/images/resample.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace troupe::data {
namespace {

/// The weights of the source pixels under one output pixel.
struct Taps {
  std::int64_t first = 0;  // source pixel
  std::int64_t count = 0;
  std::size_t weights = 0;  // index of the first
};

/// The taps of a range of output pixels along one axis. Memory is kept.
struct Axis {
  std::vector<Taps> taps;
  std::vector<float> weights;

  /// `begin` and `length`: the box in the source of `size` pixels; it becomes `resized` pixels, of which [from, from + count) are wanted.
  void fill(double begin, double length, std::int64_t size, std::int64_t resized, std::int64_t from,
            std::int64_t count) {
    taps.clear();
    weights.clear();
    const double scale = length / static_cast<double>(resized);
    const double width = std::max(scale, 1.0);  // of half the triangle, in source pixels
    for (std::int64_t i = from; i < from + count; ++i) {
      const double center = begin + (static_cast<double>(i) + 0.5) * scale;
      const auto first = std::clamp<std::int64_t>(static_cast<std::int64_t>(center - width + 0.5), 0, size - 1);
      const auto past = std::clamp<std::int64_t>(static_cast<std::int64_t>(center + width + 0.5), first + 1, size);
      Taps tap{first, past - first, weights.size()};
      double sum = 0;
      for (std::int64_t x = first; x < past; ++x)
        sum += std::max(0.0, 1 - std::abs(static_cast<double>(x) - center + 0.5) / width);
      for (std::int64_t x = first; x < past; ++x) {
        const double weight = std::max(0.0, 1 - std::abs(static_cast<double>(x) - center + 0.5) / width);
        weights.push_back(static_cast<float>(sum > 0 ? weight / sum : 1.0 / static_cast<double>(past - first)));
      }
      taps.push_back(tap);
    }
  }
};

struct Scratch {
  Axis columns;
  Axis rows;
  std::vector<float> row;             // [source columns, 4]
  std::vector<std::uint32_t> pixels;  // one output row, four bytes each
};

using Four = float __attribute__((vector_size(16)));  // the channels of a pixel
using FourInts = std::int32_t __attribute__((vector_size(16)));

/// Source rows → one row of floats. Simple, so that compilers vectorise it.
[[gnu::always_inline]] inline void weigh_rows(const std::uint8_t* __restrict source, std::size_t stride,
                                              const float* weights, std::int64_t count, std::size_t values,
                                              float* __restrict out) {
  std::int64_t k = 0;
  if (count >= 2) {
    const std::uint8_t* const next = source + stride;
    const float a = weights[0], b = weights[1];
    for (std::size_t i = 0; i < values; ++i)
      out[i] = static_cast<float>(source[i]) * a + static_cast<float>(next[i]) * b;
    k = 2;
  } else {
    for (std::size_t i = 0; i < values; ++i) out[i] = static_cast<float>(source[i]) * weights[0];
    k = 1;
  }
  for (; k + 1 < count; k += 2) {
    const std::uint8_t* const one = source + static_cast<std::size_t>(k) * stride;
    const std::uint8_t* const two = one + stride;
    const float a = weights[k], b = weights[k + 1];
    for (std::size_t i = 0; i < values; ++i)
      out[i] = (out[i] + static_cast<float>(one[i]) * a) + static_cast<float>(two[i]) * b;
  }
  if (k < count) {
    const std::uint8_t* const one = source + static_cast<std::size_t>(k) * stride;
    const float a = weights[k];
    for (std::size_t i = 0; i < values; ++i) out[i] += static_cast<float>(one[i]) * a;
  }
}

/// One row of floats → one row of output pixels. Weights are not negative and add up to 1: the result is a byte.
[[gnu::always_inline]] inline void weigh_columns(const float* row, const Axis& columns, std::uint32_t* __restrict out) {
  for (std::size_t i = 0; i < columns.taps.size(); ++i) {
    const Taps& taps = columns.taps[i];
    const float* source = row + taps.first * PixelBuffer::kBytes;
    const float* weights = columns.weights.data() + taps.weights;
    Four sum{0.5f, 0.5f, 0.5f, 0.5f};
    for (std::int64_t k = 0; k < taps.count; ++k, source += PixelBuffer::kBytes) {
      Four pixel;
      std::memcpy(&pixel, source, sizeof(pixel));
      sum += pixel * weights[k];
    }
    const FourInts bytes = __builtin_convertvector(sum, FourInts);
    out[i] = static_cast<std::uint32_t>(bytes[0] | bytes[1] << 8 | bytes[2] << 16);
  }
}

[[gnu::always_inline]] inline void split_channels(const std::uint32_t* __restrict pixels, std::size_t count,
                                                  std::size_t plane, std::uint8_t* __restrict out) {
  for (std::size_t x = 0; x < count; ++x) out[x] = static_cast<std::uint8_t>(pixels[x]);
  for (std::size_t x = 0; x < count; ++x) out[plane + x] = static_cast<std::uint8_t>(pixels[x] >> 8);
  for (std::size_t x = 0; x < count; ++x) out[2 * plane + x] = static_cast<std::uint8_t>(pixels[x] >> 16);
}

[[gnu::always_inline]] inline void resample_rows(const PixelBuffer& source, const PixelBox& window, Scratch& scratch,
                                                 std::uint8_t* out) {
  const auto width = static_cast<std::size_t>(window.width);
  const auto plane = static_cast<std::size_t>(window.width * window.height);
  const auto stride = static_cast<std::size_t>(source.size.width * PixelBuffer::kBytes);
  // Only the columns that some output pixel needs.
  const std::int64_t first = scratch.columns.taps.front().first;
  const std::int64_t past = scratch.columns.taps.back().first + scratch.columns.taps.back().count;
  const auto begin = static_cast<std::size_t>(first * PixelBuffer::kBytes);
  const auto values = static_cast<std::size_t>((past - first) * PixelBuffer::kBytes);
  for (std::size_t y = 0; y < scratch.rows.taps.size(); ++y) {
    const Taps& taps = scratch.rows.taps[y];
    weigh_rows(source.row(taps.first) + begin, stride, scratch.rows.weights.data() + taps.weights, taps.count, values,
               scratch.row.data() + begin);
    weigh_columns(scratch.row.data(), scratch.columns, scratch.pixels.data());
    split_channels(scratch.pixels.data(), width, plane, out + y * width);
  }
}

void resample_generic(const PixelBuffer& source, const PixelBox& window, Scratch& scratch, std::uint8_t* out) {
  resample_rows(source, window, scratch, out);
}

#if defined(__x86_64__)
/// The same additions in the same order, more at a time: without contraction (CMakeLists.txt) the bits are the same.
[[gnu::target("avx2")]] void resample_avx2(const PixelBuffer& source, const PixelBox& window, Scratch& scratch,
                                           std::uint8_t* out) {
  resample_rows(source, window, scratch, out);
}
#endif

auto* chosen_resample() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return resample_avx2;
#endif
  return resample_generic;
}

}  // namespace

void resample(const PixelBuffer& source, PictureSize resized, const PixelBox& window, std::span<std::uint8_t> out) {
  static const auto kernel = chosen_resample();
  thread_local Scratch scratch;
  if (out.size() != static_cast<std::size_t>(3 * window.width * window.height) || window.left < 0 || window.top < 0 ||
      window.left + window.width > resized.width || window.top + window.height > resized.height)
    throw std::invalid_argument("the window lies outside of the resized picture, or has another size than its memory");
  if (out.empty()) return;
  scratch.columns.fill(source.box.left, source.box.width, source.size.width, resized.width, window.left, window.width);
  scratch.rows.fill(source.box.top, source.box.height, source.size.height, resized.height, window.top, window.height);
  scratch.row.resize(static_cast<std::size_t>(source.size.width * PixelBuffer::kBytes));
  scratch.pixels.resize(static_cast<std::size_t>(window.width));
  kernel(source, window, scratch, out.data());
}

}  // namespace troupe::data
