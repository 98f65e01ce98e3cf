/// Reads images and labels out of arrays of HDF5 files. Contiguous arrays are read from their place in the file, without the HDF5 library;
/// chunks come from it and are unpacked here. Thread rule: pure but for reading files.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "data/hdf5/array_library.hpp"

namespace troupe::data {

/// Channels, height, width.
using ImageSides = std::array<std::int64_t, 3>;

/// The order of the axes of an array of images: c01b is channel, height, width, image (Theano-MPI's), bc01 is image, channel, height, width.
enum class AxisOrder : std::uint8_t { c01b, bc01 };

/// The order of an array of four dimensions. `expected` is the shape of an image, if it is known: it must stand in front (c01b, also where
/// both fit) or at the end (bc01). Otherwise one of the first two sides is 1 or 3, the number of channels, and the other is not. None: it
/// cannot be told.
[[nodiscard]] std::optional<AxisOrder> axis_order(std::span<const std::int64_t> shape,
                                                  const std::optional<ImageSides>& expected);

/// An array of images, [channels, height, width, images] or [images, channels, height, width].
struct ImageArray {
  StoredArray array;
  AxisOrder order = AxisOrder::c01b;
  [[nodiscard]] std::int64_t images() const { return array.shape.at(order == AxisOrder::c01b ? 3 : 0); }
  [[nodiscard]] ImageSides shape() const;
  /// Whether one image can be read without its neighbours.
  [[nodiscard]] bool separate() const { return order == AxisOrder::bc01 && array.chunk.empty(); }
};

/// Images [first, first + count) into `out` [count, channels, height, width]. Memory beside: a chunk, packed and unpacked, or 4 MiB and a
/// row of all images. REQUIRES images of at most 2^28 bytes. Errc::data names the file, and the chunk or the byte; io; config: no library.
[[nodiscard]] core::Result<void> read_images(const std::string& path, const ImageArray& images, std::int64_t first,
                                             std::int64_t count, std::span<std::uint8_t> out);

/// All values of an array of one dimension. REQUIRES at most 2^32 values. Errors as read_images().
[[nodiscard]] core::Result<std::vector<std::int64_t>> read_integers(const std::string& path, const StoredArray& array);

}  // namespace troupe::data
