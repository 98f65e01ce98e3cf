/// Decodes a picture of either format, told by its first bytes. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "core/error.hpp"
#include "data/images/pixels.hpp"

namespace troupe::data {

/// The size of a JPEG or PNG. Errc::data: another format (GIF, WebP, TIFF, BMP are named), a damaged header, or more than `most_pixels`
/// pixels.
[[nodiscard]] core::Result<PictureSize> picture_size(std::span<const std::uint8_t> bytes, std::int64_t most_pixels);

/// decode_jpeg() or decode_png(). REQUIRES bytes that picture_size() has accepted.
[[nodiscard]] core::Result<void> decode_picture(std::span<const std::uint8_t> bytes, const PixelBox& box,
                                                PictureSize least, PixelBuffer& out);

}  // namespace troupe::data
