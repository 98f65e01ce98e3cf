/// Element bodies that make NHWC images of planes: an index is a pixel of the output, so neighbouring threads read neighbours of each plane.
/// Few channels are meant. Thread rule: plain values.
#pragma once

#include "gpu/kernels/bodies/groups.hpp"
#include "gpu/kernels/kernel.hpp"

namespace troupe::gpu {

/// Writes `channels` channels of one pixel, value_of(c) each: in accesses of kLanes. kLanes divides `channels` and `to` is aligned, or it is 1.
template <int kLanes, class T, class ValueOf>
TROUPE_HOST_DEVICE inline void write_pixel(T* to, std::int64_t channels, const ValueOf& value_of) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    Lanes<kLanes> lanes;
    TROUPE_UNROLL
    for (int l = 0; l < kLanes; ++l) lanes[l] = value_of(c + l);
    store(to + c, lanes);
  }
}

template <class T, int kLanes>
struct ImagesToNhwcBody {
  const float* from;  // [batch, channels, plane]
  T* to;              // [batch, plane, to_channels]
  Divider plane;
  std::int64_t channels;
  std::int64_t to_channels;
  TROUPE_HOST_DEVICE void operator()(std::int64_t pixel) const {
    const auto [sample, at] = plane(pixel);
    const float* const mine = from + sample * channels * plane.divisor() + at;
    write_pixel<kLanes>(to + pixel * to_channels, to_channels,
                        [&](std::int64_t c) { return c < channels ? mine[c * plane.divisor()] : 0.0f; });
  }
};

/// The float32 values are data::Preprocess's, bit for bit.
template <class T, int kLanes>
struct BytesToNhwcBody {
  const std::uint8_t* from;
  T* to;
  const Cut* cuts;
  const float* scale;
  const float* bias;
  Images output;
  std::int64_t channels;
  std::int64_t to_channels;
  std::int64_t height;  // of the source
  std::int64_t width;
  TROUPE_HOST_DEVICE void operator()(std::int64_t pixel) const {
    const Place place = output(pixel);
    const Cut cut = cuts[place.sample];
    const std::int64_t row = place.row + cut.top;
    const std::int64_t column = (cut.mirror != 0 ? output.width() - 1 - place.column : place.column) + cut.left;
    const bool inside = row >= 0 && row < height && column >= 0 && column < width;
    const std::int64_t plane = height * width;
    const std::int64_t at = row * width + column;
    const std::uint8_t* const mine = from + place.sample * channels * plane;
    write_pixel<kLanes>(to + pixel * to_channels, to_channels, [&](std::int64_t c) {
      if (!inside || c >= channels) return 0.0f;
      return static_cast<float>(mine[c * plane + at]) * scale[c] + bias[c * plane + at];
    });
  }
};

}  // namespace troupe::gpu
