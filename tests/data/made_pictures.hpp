/// Pictures and files of pictures for tests, made in memory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/images/pixels.hpp"

namespace troupe::data {

using Bytes = std::vector<std::uint8_t>;

/// A smooth colour picture with some texture: value of channel c at (x, y). `variant` changes it.
[[nodiscard]] std::uint8_t made_value(std::int64_t x, std::int64_t y, int c, int variant = 0);

/// many_scans: progressive, of more than 500 scans.
enum class JpegKind : std::uint8_t { colour, full_chroma, grey, cmyk, progressive, many_scans };
[[nodiscard]] Bytes made_jpeg(PictureSize size, JpegKind kind = JpegKind::colour, int variant = 0);

enum class PngKind : std::uint8_t { rgb, rgba, grey, grey16, rgb16, interlaced };
[[nodiscard]] Bytes made_png(PictureSize size, PngKind kind = PngKind::rgb, int variant = 0);
/// `png` with a chunk more, behind its header.
[[nodiscard]] Bytes with_chunk(Bytes png, const std::string& name, const Bytes& data);
/// A PNG that says it is an animation.
[[nodiscard]] Bytes made_apng(PictureSize size);

/// An entry of a tar file. `type`: '0' file, '2' symbolic link, '1' hard link, '5' folder.
struct TarEntry {
  std::string name;
  Bytes bytes = {};
  char type = '0';
};
[[nodiscard]] Bytes made_tar(const std::vector<TarEntry>& entries);
[[nodiscard]] Bytes text_bytes(const std::string& text);

}  // namespace troupe::data
