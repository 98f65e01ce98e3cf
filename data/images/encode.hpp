/// Writes images as JPEG (libjpeg-turbo) or PNG (libpng) into memory. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "data/images/image_shape.hpp"

namespace troupe::data {

/// `pixels` [shape], channel by channel, of one channel (grey) or three (RGB). `quality` is libjpeg's, 1 to 100; colours keep their full
/// resolution. Errc::config: another number of channels, or a side of more than 65,500 pixels; internal: the library failed.
[[nodiscard]] core::Result<std::vector<std::uint8_t>> encode_jpeg(ImageShape shape,
                                                                  std::span<const std::uint8_t> pixels, int quality);

/// The same as PNG, which loses nothing.
[[nodiscard]] core::Result<std::vector<std::uint8_t>> encode_png(ImageShape shape,
                                                                 std::span<const std::uint8_t> pixels);

}  // namespace troupe::data
