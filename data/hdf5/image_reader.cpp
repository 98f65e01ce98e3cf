#include "data/hdf5/image_reader.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "data/files/open_file.hpp"
#include "data/hdf5/chunk_filters.hpp"

namespace troupe::data {
namespace {

using core::Errc;
using core::fail;
using core::Result;

constexpr std::int64_t kSlabBytes = 4 << 20;

/// A number for each axis of images: elements between neighbours, or a count of elements.
struct PerAxis {
  std::int64_t image = 0, channel = 0, row = 0, column = 0;
};

/// Sides of a box, in the order of the array's dimensions, by axis.
PerAxis by_axis(AxisOrder order, std::span<const std::int64_t> sides) {
  return order == AxisOrder::c01b ? PerAxis{sides[3], sides[0], sides[1], sides[2]}
                                  : PerAxis{sides[0], sides[1], sides[2], sides[3]};
}

/// Distances in a box that is stored densely.
PerAxis dense(AxisOrder order, const PerAxis& sides) {
  if (order == AxisOrder::c01b)
    return {1, sides.row * sides.column * sides.image, sides.column * sides.image, sides.image};
  return {sides.channel * sides.row * sides.column, sides.row * sides.column, sides.column, 1};
}

/// Copies a box of `sides` bytes. Bytes of a row lie together in `to`: the rows of all images are read while they are in the cache.
void copy_box(const std::uint8_t* from, const PerAxis& apart, std::uint8_t* to, const PerAxis& apart_to,
              const PerAxis& sides) {
  for (std::int64_t channel = 0; channel < sides.channel; ++channel)
    for (std::int64_t row = 0; row < sides.row; ++row) {
      const std::uint8_t* const source = from + channel * apart.channel + row * apart.row;
      std::uint8_t* const target = to + channel * apart_to.channel + row * apart_to.row;
      for (std::int64_t image = 0; image < sides.image; ++image) {
        const std::uint8_t* in = source + image * apart.image;
        std::uint8_t* const out = target + image * apart_to.image;
        if (apart.column == 1) {
          std::memcpy(out, in, static_cast<std::size_t>(sides.column));
          continue;
        }
        for (std::int64_t x = 0; x < sides.column; ++x, in += apart.column) out[x] = *in;
      }
    }
}

/// Distances in [images, channels, height, width].
PerAxis image_major(const ImageSides& shape) {
  return {shape[0] * shape[1] * shape[2], shape[1] * shape[2], shape[2], 1};
}

/// Images [first, first + count) of a contiguous array in the order c01b.
Result<void> read_across(const OpenFile& file, const ImageArray& images, std::int64_t first, std::int64_t count,
                         std::uint8_t* out) {
  const ImageSides shape = images.shape();
  const std::int64_t all = images.images(), width = shape[2];
  const bool whole = count == all;
  // Whole rows of all images lie together; of a part of the images, each pixel is a piece of its own.
  const std::int64_t rows = whole ? std::clamp<std::int64_t>(kSlabBytes / (width * all), 1, shape[1]) : 1;
  std::vector<std::uint8_t> slab(static_cast<std::size_t>(rows * width * count));
  const PerAxis to = image_major(shape);
  for (std::int64_t channel = 0; channel < shape[0]; ++channel)
    for (std::int64_t row = 0; row < shape[1]; row += rows) {
      const std::int64_t now = std::min(rows, shape[1] - row);
      const std::int64_t pixel = (channel * shape[1] + row) * width;
      const std::int64_t pieces = whole ? 1 : width;
      const auto bytes = static_cast<std::size_t>(whole ? now * width * count : count);
      for (std::int64_t piece = 0; piece < pieces; ++piece) {
        const auto at = images.array.offset + static_cast<std::uint64_t>((pixel + piece) * all + first);
        const auto part = std::span(slab).subspan(static_cast<std::size_t>(piece) * bytes, bytes);
        if (auto read = file.read(at, part); !read) return read;
      }
      const PerAxis sides{count, 1, now, width};
      copy_box(slab.data(), dense(AxisOrder::c01b, sides), out + channel * to.channel + row * to.row, to, sides);
    }
  return {};
}

/// The first elements of the chunks that have images [first, first + count).
std::vector<ChunkOrigin> origins_of(const ImageArray& images, std::int64_t first, std::int64_t count) {
  const auto &shape = images.array.shape, &chunk = images.array.chunk;
  const std::size_t image_axis = images.order == AxisOrder::c01b ? 3 : 0;
  ChunkOrigin begin{}, end{};
  for (std::size_t d = 0; d < begin.size(); ++d) end[d] = shape[d];
  begin[image_axis] = first / chunk[image_axis] * chunk[image_axis];
  end[image_axis] = first + count;
  std::vector<ChunkOrigin> origins;
  for (auto a = begin[0]; a < end[0]; a += chunk[0])
    for (auto b = begin[1]; b < end[1]; b += chunk[1])
      for (auto c = begin[2]; c < end[2]; c += chunk[2])
        for (auto d = begin[3]; d < end[3]; d += chunk[3]) origins.push_back({a, b, c, d});
  return origins;
}

std::size_t chunk_bytes(const StoredArray& array) {
  std::int64_t bytes = bytes_of(array.type);
  for (const auto side : array.chunk) bytes *= side;
  return static_cast<std::size_t>(bytes);
}

Result<void> read_chunked(const std::string& path, const ImageArray& images, std::int64_t first, std::int64_t count,
                          std::uint8_t* out) {
  const auto library = array_library();
  if (!library) return tl::unexpected(library.error());
  const auto& array = images.array;
  const PerAxis shape = by_axis(images.order, array.shape), chunk = by_axis(images.order, array.chunk);
  const PerAxis apart = dense(images.order, chunk), to = image_major(images.shape());
  std::vector<std::uint8_t> unpacked(chunk_bytes(array));
  return (*library)->chunks(path, array, origins_of(images, first, count), [&](const StoredChunk& stored) {
    if (auto undone = undo_filters(array.filters, stored.skipped, stored.bytes, unpacked); !undone) return undone;
    const PerAxis at = by_axis(images.order, stored.origin);
    const std::int64_t from = std::max(first, at.image);
    const PerAxis sides{std::min(first + count, at.image + chunk.image) - from,
                        std::min(chunk.channel, shape.channel - at.channel), std::min(chunk.row, shape.row - at.row),
                        std::min(chunk.column, shape.column - at.column)};
    copy_box(unpacked.data() + (from - at.image) * apart.image, apart,
             out + (from - first) * to.image + at.channel * to.channel + at.row * to.row + at.column, to, sides);
    return Result<void>{};
  });
}

std::int64_t integer_at(const std::uint8_t* bytes, ElementType type) {
  std::uint64_t value = 0;
  for (std::int64_t i = 0; i < bytes_of(type); ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
  return type == ElementType::i32 ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value);
}

}  // namespace

std::optional<AxisOrder> axis_order(std::span<const std::int64_t> shape, const std::optional<ImageSides>& expected) {
  if (shape.size() != 4) return std::nullopt;
  if (expected) {
    if (std::ranges::equal(shape.first(3), *expected)) return AxisOrder::c01b;
    if (std::ranges::equal(shape.last(3), *expected)) return AxisOrder::bc01;
    return std::nullopt;
  }
  const auto channels = [](std::int64_t side) { return side == 1 || side == 3; };
  if (channels(shape[0]) == channels(shape[1])) return std::nullopt;
  return channels(shape[0]) ? AxisOrder::c01b : AxisOrder::bc01;
}

ImageSides ImageArray::shape() const {
  const std::size_t first = order == AxisOrder::c01b ? 0 : 1;
  return {array.shape.at(first), array.shape.at(first + 1), array.shape.at(first + 2)};
}

Result<void> read_images(const std::string& path, const ImageArray& images, std::int64_t first, std::int64_t count,
                         std::span<std::uint8_t> out) {
  if (!images.array.chunk.empty()) return read_chunked(path, images, first, count, out.data());
  const auto file = OpenFile::open(path);
  if (!file) return tl::unexpected(file.error());
  if (!images.separate()) return read_across(*file, images, first, count, out.data());
  const ImageSides shape = images.shape();
  return file->read(images.array.offset + static_cast<std::uint64_t>(first * shape[0] * shape[1] * shape[2]), out);
}

Result<std::vector<std::int64_t>> read_integers(const std::string& path, const StoredArray& array) {
  const auto each = static_cast<std::size_t>(bytes_of(array.type));
  const auto count = static_cast<std::size_t>(array.shape.at(0));
  std::vector<std::uint8_t> bytes;
  std::vector<std::int64_t> values;
  const auto take = [&](std::size_t from, std::size_t most) {
    for (std::size_t i = 0; i < most && from + i < count; ++i)
      values.push_back(integer_at(bytes.data() + i * each, array.type));
  };
  if (array.chunk.empty()) {
    const auto file = OpenFile::open(path);
    if (!file) return tl::unexpected(file.error());
    if (count > file->size() / each) return fail(Errc::data, fmt::format("{}: '{}': truncated", path, array.name));
    bytes.resize(count * each);
    if (auto read = file->read(array.offset, bytes); !read) return tl::unexpected(read.error());
    take(0, count);
    return values;
  }
  const auto library = array_library();
  if (!library) return tl::unexpected(library.error());
  std::vector<ChunkOrigin> origins;
  for (std::int64_t at = 0; at < array.shape[0]; at += array.chunk[0]) origins.push_back({at, 0, 0, 0});
  bytes.resize(chunk_bytes(array));
  auto read = (*library)->chunks(path, array, origins, [&](const StoredChunk& stored) {
    auto undone = undo_filters(array.filters, stored.skipped, stored.bytes, bytes);
    if (undone) take(static_cast<std::size_t>(stored.origin[0]), static_cast<std::size_t>(array.chunk[0]));
    return undone;
  });
  if (!read) return tl::unexpected(read.error());
  return values;
}

}  // namespace troupe::data
