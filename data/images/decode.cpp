#include "data/images/decode.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "data/images/jpeg.hpp"
#include "data/images/png.hpp"

namespace troupe::data {
namespace {

std::string_view other_format(std::span<const std::uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.empty()) return "an empty file";
  if (text.starts_with("GIF8")) return "a GIF";
  if (text.starts_with("RIFF") && text.substr(0, 12).ends_with("WEBP")) return "a WebP";
  if (text.starts_with("BM")) return "a BMP";
  if (text.starts_with("II*") || text.starts_with("MM")) return "a TIFF";
  return "neither JPEG nor PNG";
}

}  // namespace

core::Result<PictureSize> picture_size(std::span<const std::uint8_t> bytes, std::int64_t most_pixels) {
  const bool jpeg = is_jpeg(bytes);
  if (!jpeg && !is_png(bytes))
    return core::fail(core::Errc::data, fmt::format("{}: JPEG and PNG are read", other_format(bytes)));
  const auto size = jpeg ? jpeg_size(bytes) : png_size(bytes);
  if (size && size->width > most_pixels / size->height)
    return core::fail(core::Errc::data, fmt::format("{} x {} pixels are more than data.max_pixels = {}", size->width,
                                                    size->height, most_pixels));
  return size;
}

core::Result<void> decode_picture(std::span<const std::uint8_t> bytes, const PixelBox& box, PictureSize least,
                                  PixelBuffer& out) {
  return is_jpeg(bytes) ? decode_jpeg(bytes, box, least, out) : decode_png(bytes, box, out);
}

}  // namespace troupe::data
