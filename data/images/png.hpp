/// Decodes PNG through libpng, row by row: 8-bit RGB from any kind of PNG. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "core/error.hpp"
#include "data/images/pixels.hpp"

namespace troupe::data {

[[nodiscard]] bool is_png(std::span<const std::uint8_t> bytes) noexcept;

/// The picture's size from its header. Errc::data: what is wrong with it; an animation (APNG) is refused.
[[nodiscard]] core::Result<PictureSize> png_size(std::span<const std::uint8_t> bytes);

/// Decodes the part `box`. Palettes and grey become RGB, 16 bits become 8 (rounded), transparency is dropped. An interlaced picture takes
/// memory for all of its pixels, any other for those of the box; texts and profiles take none. Errc::data: damaged or truncated. REQUIRES
/// a box within the picture.
[[nodiscard]] core::Result<void> decode_png(std::span<const std::uint8_t> bytes, const PixelBox& box, PixelBuffer& out);

}  // namespace troupe::data
