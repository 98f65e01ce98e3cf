/// Resizes with the triangle filter whose width grows with the reduction ("bilinear, antialiased": what PIL's BILINEAR computes, within
/// one of 255). Thread rule: pure functions. The result has the same bits on every machine.
#pragma once

#include <cstdint>
#include <span>

#include "data/images/pixels.hpp"

namespace troupe::data {

/// Resizes `source.box` to `resized`, and writes the part `window` of the result to `out` [3, window.height, window.width], channel by
/// channel. Only the window is computed. Time: about 0.3 ms for 224 x 224. REQUIRES a window within `resized`. The box may
/// reach beyond the buffer: pixels that are not there count as if the picture ended there.
void resample(const PixelBuffer& source, PictureSize resized, const PixelBox& window, std::span<std::uint8_t> out);

}  // namespace troupe::data
