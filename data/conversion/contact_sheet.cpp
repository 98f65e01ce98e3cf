#include "data/conversion/contact_sheet.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "data/images/resample.hpp"

namespace troupe::data {
namespace {

constexpr std::int64_t kBorder = 2;  // pixels
constexpr std::uint8_t kWhite = 255;
constexpr std::int64_t kMostPixels = 50'000'000;

/// [channels, height, width] as the resampler's four bytes a pixel.
void to_buffer(ImageShape shape, const std::vector<std::uint8_t>& pixels, PixelBuffer& buffer) {
  buffer.reshape({shape.width, shape.height});
  buffer.box = {0, 0, static_cast<double>(shape.width), static_cast<double>(shape.height)};
  const auto plane = static_cast<std::size_t>(shape.height * shape.width);
  for (std::size_t i = 0; i < plane; ++i)
    for (std::size_t c = 0; c < 3; ++c) buffer.bytes[4 * i + c] = pixels[(shape.channels < 3 ? 0 : c * plane) + i];
}

}  // namespace

core::Result<ContactSheet> contact_sheet(const Dataset& data, const std::vector<std::vector<std::int64_t>>& rows,
                                         std::int64_t cell, const AugmentKey* key) {
  std::size_t columns = 0;
  for (const auto& row : rows) columns = std::max(columns, row.size());
  const auto step = cell + kBorder;
  ContactSheet sheet{
      {3, static_cast<std::int64_t>(rows.size()) * step + kBorder, static_cast<std::int64_t>(columns) * step + kBorder},
      {}};
  if (sheet.shape.height > kMostPixels / sheet.shape.width)
    return core::fail(core::Errc::config,
                      fmt::format("a sheet of {} x {} pixels is too large: fewer columns, or smaller cells",
                                  sheet.shape.width, sheet.shape.height));
  sheet.pixels.assign(static_cast<std::size_t>(sheet.shape.size()), kWhite);
  const auto shape = data.shape();
  const auto longer = std::max(shape.height, shape.width);
  const PictureSize size{std::max<std::int64_t>(1, shape.width * cell / longer),
                         std::max<std::int64_t>(1, shape.height * cell / longer)};
  const auto plane = static_cast<std::size_t>(size.width * size.height);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(shape.size())), small(3 * plane);
  PixelBuffer buffer;
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t k = 0; k < rows[r].size(); ++k) {
      AugmentKey own = key ? *key : AugmentKey{};
      own.epoch += static_cast<std::uint32_t>(k);
      const auto read = key ? data.read_augmented(rows[r][k], own, pixels) : data.read(rows[r][k], pixels);
      if (!read && read.error().code != core::Errc::data) return tl::unexpected(read.error());
      if (!read) continue;
      to_buffer(shape, pixels, buffer);
      resample(buffer, size, {0, 0, size.width, size.height}, small);
      const auto top = static_cast<std::int64_t>(r) * step + kBorder,
                 left = static_cast<std::int64_t>(k) * step + kBorder;
      for (std::int64_t c = 0; c < 3; ++c)
        for (std::int64_t y = 0; y < size.height; ++y)
          std::copy_n(small.begin() + c * static_cast<std::int64_t>(plane) + y * size.width, size.width,
                      sheet.pixels.begin() + (c * sheet.shape.height + top + y) * sheet.shape.width + left);
    }
  return sheet;
}

}  // namespace troupe::data
