/// Decodes JPEG through libjpeg-turbo: only the part that is needed, and reduced by 2, 4 or 8 in the frequency domain where the result
/// stays at least as large as needed. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "core/error.hpp"
#include "data/images/pixels.hpp"

namespace troupe::data {

[[nodiscard]] bool is_jpeg(std::span<const std::uint8_t> bytes) noexcept;

/// The picture's size from its header. Errc::data: what is wrong with it.
[[nodiscard]] core::Result<PictureSize> jpeg_size(std::span<const std::uint8_t> bytes);

/// Decodes the part `box`, as small as DCT scaling allows while out.box is at least `least` in both directions (or not reduced). Grey and
/// CMYK become RGB. Errc::data: damaged or truncated, also where the damage lies outside of what is needed and was noticed; hundreds of
/// scans. A progressive picture takes two bytes for each value of all of its pixels.
/// REQUIRES a box within the picture.
[[nodiscard]] core::Result<void> decode_jpeg(std::span<const std::uint8_t> bytes, const PixelBox& box,
                                             PictureSize least, PixelBuffer& out);

}  // namespace troupe::data
