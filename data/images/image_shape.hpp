/// The shape of an image of a data set.
#pragma once

#include <cstdint>

namespace troupe::data {

/// The shape of one image. Pixels are stored channel by channel, row by row.
struct ImageShape {
  std::int64_t channels = 1;
  std::int64_t height = 0;
  std::int64_t width = 0;
  [[nodiscard]] std::int64_t size() const noexcept { return channels * height * width; }
  bool operator==(const ImageShape&) const = default;
};

}  // namespace troupe::data
