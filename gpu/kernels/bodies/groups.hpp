/// How tensors [pixels, channels] are walked: an index is a group of kLanes neighbouring channels of one pixel, groups of a pixel first, so
/// that neighbouring threads touch neighbouring memory. Thread rule: plain values.
#pragma once

#include "gpu/kernels/bodies/numbers.hpp"
#include "gpu/kernels/types.hpp"

namespace troupe::gpu {

struct Spot {
  std::int64_t pixel;    // of the whole batch
  std::int64_t channel;  // the first of the group
};

/// Groups of pixels; kLanes divides the channels.
template <int kLanes>
class Groups {
 public:
  Groups(std::int64_t pixels, std::int64_t channels) : groups_(channels / kLanes), pixels_(pixels) {}
  [[nodiscard]] std::int64_t indices() const { return pixels_ * per_pixel(); }
  [[nodiscard]] TROUPE_HOST_DEVICE Spot operator()(std::int64_t index) const {
    const auto parts = groups_(index);
    return {parts.quotient, parts.remainder * kLanes};
  }
  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t per_pixel() const { return groups_.divisor(); }

 private:
  Divider groups_;
  std::int64_t pixels_;
};

/// A pixel's place in its image.
struct Place {
  std::int64_t sample;
  std::int64_t row;
  std::int64_t column;
};
class Images {
 public:
  explicit Images(const TensorShape& shape) : height_(shape.height), width_(shape.width) {}
  [[nodiscard]] TROUPE_HOST_DEVICE Place operator()(std::int64_t pixel) const {
    const auto by_width = width_(pixel);
    const auto by_height = height_(by_width.quotient);
    return {by_height.quotient, by_height.remainder, by_width.remainder};
  }
  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t height() const { return height_.divisor(); }
  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t width() const { return width_.divisor(); }
  /// The number of a pixel in the batch.
  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t pixel(std::int64_t sample, std::int64_t row,
                                                      std::int64_t column) const {
    return (sample * height() + row) * width() + column;
  }

 private:
  Divider height_;
  Divider width_;
};

/// The lanes with which tensors of T with these channels are walked: the widest access where it fits, else one.
template <class T, class... Pointers>
[[nodiscard]] bool takes_wide(std::int64_t channels, const Pointers*... pointers) {
  return channels % kLanesOf<T> == 0 && are_aligned(pointers...);
}

}  // namespace troupe::gpu
