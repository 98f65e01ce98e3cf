/// Element bodies of pooling: an index is a group of channels of a pixel. Backward gathers: a thread makes its elements of dx from the
/// windows that cover them, in order, so there are no atomic additions. Thread rule: plain values.
#pragma once

#include "gpu/kernels/bodies/groups.hpp"
#include "nn/graph.hpp"

namespace troupe::gpu {

/// Windows along one dimension.
struct Windows {
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t padding;
  std::int64_t extent;   // of the input
  std::int64_t windows;  // of the output
  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t begin(std::int64_t window) const {
    return larger<std::int64_t>(0, window * stride - padding);
  }
  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t end(std::int64_t window) const {
    return smaller(extent, window * stride - padding + kernel);
  }
  /// The windows that cover place `at`: [first, last].
  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t first_over(std::int64_t at) const {
    const std::int64_t reach = at + padding - kernel + 1;
    return reach <= 0 ? 0 : static_cast<std::int64_t>(ceil_div(reach, stride));
  }
  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t last_over(std::int64_t at) const {
    return smaller(windows - 1, (at + padding) / stride);
  }
};

/// Windows of nn::AdaptiveAveragePoolLayer along one dimension: window i is [⌊i · extent / windows⌋, ⌈(i + 1) · extent / windows⌉).
struct EvenWindows {
  std::int64_t extent;
  std::int64_t windows;
  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t begin(std::int64_t window) const { return window * extent / windows; }
  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t end(std::int64_t window) const {
    return ceil_div((window + 1) * extent, windows);
  }
  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t first_over(std::int64_t at) const { return at * windows / extent; }
  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t last_over(std::int64_t at) const {
    return ceil_div((at + 1) * windows, extent) - 1;
  }
};

/// The first of the largest elements wins; NaN beats all. A window without pixels gives 0 and winner −1.
template <class T, int kLanes>
struct MaxPoolForwardBody {
  const T* x;
  T* y;
  std::int32_t* winners;  // null: not kept
  Windows rows;
  Windows columns;
  Images input;
  Images output;
  std::int64_t channels;
  Groups<kLanes> groups;
  TROUPE_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [pixel, channel] = groups(index);
    const Place place = output(pixel);
    Lanes<kLanes> best{};
    std::int32_t from[kLanes];
    TROUPE_UNROLL
    for (int l = 0; l < kLanes; ++l) from[l] = -1;
    for (std::int64_t r = rows.begin(place.row); r < rows.end(place.row); ++r)
      for (std::int64_t c = columns.begin(place.column); c < columns.end(place.column); ++c) {
        const auto lanes = load<kLanes>(x + input.pixel(place.sample, r, c) * channels + channel);
        const auto here = static_cast<std::int32_t>(r * input.width() + c);
        TROUPE_UNROLL
        for (int l = 0; l < kLanes; ++l) {
          const bool wins = (from[l] < 0) | (lanes[l] > best[l]) | (lanes[l] != lanes[l]);  // without branches
          best[l] = wins ? lanes[l] : best[l];
          from[l] = wins ? here : from[l];
        }
      }
    store(y + pixel * channels + channel, best);
    if (winners != nullptr) write_winners(winners + pixel * channels + channel, from);
  }

 private:
  TROUPE_HOST_DEVICE static void write_winners(std::int32_t* to, const std::int32_t (&from)[kLanes]) {
    Lanes<kLanes> lanes;  // as bits of floats: the same accesses
    TROUPE_UNROLL
    for (int l = 0; l < kLanes; ++l) lanes[l] = as_float(static_cast<std::uint32_t>(from[l]));
    if constexpr (kLanes == 1)
      *to = from[0];
    else
      store(reinterpret_cast<float*>(to), lanes);
  }
};

template <class T, int kLanes>
struct MaxPoolBackwardBody {
  T* dx;
  const T* dy;
  const std::int32_t* winners;
  Windows rows;
  Windows columns;
  Images input;
  Images output;
  std::int64_t channels;
  Groups<kLanes> groups;
  TROUPE_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [pixel, channel] = groups(index);
    const Place place = input(pixel);
    const auto here = static_cast<std::int32_t>(place.row * input.width() + place.column);
    Lanes<kLanes> sum{};
    for (std::int64_t r = rows.first_over(place.row); r <= rows.last_over(place.row); ++r)
      for (std::int64_t c = columns.first_over(place.column); c <= columns.last_over(place.column); ++c) {
        const std::int64_t at = output.pixel(place.sample, r, c) * channels + channel;
        const auto gradient = load<kLanes>(dy + at);
        std::int32_t winner[kLanes];
        read_winners(winners + at, winner);
        TROUPE_UNROLL
        for (int l = 0; l < kLanes; ++l)
          if (winner[l] == here) sum[l] = sum[l] + gradient[l];
      }
    store(dx + pixel * channels + channel, sum);
  }

 private:
  TROUPE_HOST_DEVICE static void read_winners(const std::int32_t* from, std::int32_t (&winner)[kLanes]) {
    if constexpr (kLanes == 1) {
      winner[0] = *from;
    } else {
      const auto lanes = load<kLanes>(reinterpret_cast<const float*>(from));
      TROUPE_UNROLL
      for (int l = 0; l < kLanes; ++l) winner[l] = static_cast<std::int32_t>(bits_of(lanes[l]));
    }
  }
};

/// W: Windows or EvenWindows. Divides by the pixels that exist; a window without any gives 0.
template <class T, int kLanes, class W>
struct AveragePoolForwardBody {
  const T* x;
  T* y;
  W rows;
  W columns;
  Images input;
  Images output;
  std::int64_t channels;
  Groups<kLanes> groups;
  TROUPE_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [pixel, channel] = groups(index);
    const Place place = output(pixel);
    const std::int64_t first = columns.begin(place.column);
    const std::int64_t end = columns.end(place.column);
    const std::int64_t top = rows.begin(place.row);
    const std::int64_t bottom = rows.end(place.row);
    Lanes<kLanes> sum{};
    for (std::int64_t r = top; r < bottom; ++r)
      for (std::int64_t c = first; c < end; ++c) {
        const auto lanes = load<kLanes>(x + input.pixel(place.sample, r, c) * channels + channel);
        TROUPE_UNROLL
        for (int l = 0; l < kLanes; ++l) sum[l] = sum[l] + lanes[l];
      }
    const bool empty = bottom <= top || end <= first;
    const float pixels = empty ? 1.0f : static_cast<float>((bottom - top) * (end - first));
    TROUPE_UNROLL
    for (int l = 0; l < kLanes; ++l) sum[l] = sum[l] / pixels;
    store(y + pixel * channels + channel, sum);
  }
};

template <class T, int kLanes, class W>
struct AveragePoolBackwardBody {
  T* dx;
  const T* dy;
  W rows;
  W columns;
  Images input;
  Images output;
  std::int64_t channels;
  Groups<kLanes> groups;
  TROUPE_HOST_DEVICE void operator()(std::int64_t index) const {
    const auto [pixel, channel] = groups(index);
    const Place place = input(pixel);
    Lanes<kLanes> sum{};
    for (std::int64_t r = rows.first_over(place.row); r <= rows.last_over(place.row); ++r)
      for (std::int64_t c = columns.first_over(place.column); c <= columns.last_over(place.column); ++c) {
        const auto gradient = load<kLanes>(dy + output.pixel(place.sample, r, c) * channels + channel);
        const auto pixels = static_cast<float>((rows.end(r) - rows.begin(r)) * (columns.end(c) - columns.begin(c)));
        TROUPE_UNROLL
        for (int l = 0; l < kLanes; ++l) sum[l] = sum[l] + gradient[l] / pixels;
      }
    store(dx + pixel * channels + channel, sum);
  }
};

}  // namespace troupe::gpu
