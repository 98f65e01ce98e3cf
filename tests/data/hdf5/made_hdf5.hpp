/// HDF5 files for tests, written through the library's C API. One thread.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/hdf5/image_reader.hpp"

namespace troupe::data {

using Bytes = std::vector<std::uint8_t>;

/// How an array is stored: without a chunk in one piece.
struct Stored {
  std::vector<hsize_t> chunk = {};
  bool shuffle = false;
  bool gzip = false;
  int filter = 0;  // another filter that the library need not have: chunks are to be written by write_chunk(); 0: none
};

class MadeHdf5 {
 public:
  explicit MadeHdf5(const std::filesystem::path& path, hsize_t bytes_before = 0);
  MadeHdf5(const MadeHdf5&) = delete;
  MadeHdf5& operator=(const MadeHdf5&) = delete;
  ~MadeHdf5();

  [[nodiscard]] hid_t id() const noexcept { return file_; }
  void group(const std::string& path) const;
  /// Values are `values`, of type `type`; null: none are written.
  void array(const std::string& path, hid_t type, const std::vector<hsize_t>& shape, const void* values,
             const Stored& stored = {}) const;
  void bytes(const std::string& path, const std::vector<hsize_t>& shape, const Bytes& values,
             const Stored& stored = {}) const {
    array(path, H5T_NATIVE_UINT8, shape, values.data(), stored);
  }
  void labels(const std::string& path, const std::vector<std::int64_t>& values, const Stored& stored = {}) const {
    array(path, H5T_NATIVE_INT64, {values.size()}, values.data(), stored);
  }
  /// The chunk that begins at `origin`, as it shall stand in the file.
  void write_chunk(const std::string& path, const std::vector<hsize_t>& origin, const Bytes& packed,
                   std::uint32_t skipped = 0) const;
  /// Attribute `name` of the object at `path`: a text.
  void attribute(const std::string& path, const std::string& name, const std::string& value) const;

 private:
  hid_t file_;
};

/// Pixel (channel, y, x) of image `image`: different for neighbours in every direction.
[[nodiscard]] constexpr std::uint8_t made_pixel(std::int64_t image, std::int64_t channel, std::int64_t y,
                                                std::int64_t x) {
  return static_cast<std::uint8_t>((image * 31 + channel * 101 + y * 7 + x * 3) % 251);
}
/// Images first … first + count - 1 of `sides`, as an array of this order.
[[nodiscard]] Bytes made_images(AxisOrder order, std::int64_t first, std::int64_t count, const ImageSides& sides);
/// One image, [channels, height, width].
[[nodiscard]] Bytes made_image(std::int64_t image, const ImageSides& sides);
[[nodiscard]] std::vector<hsize_t> made_shape(AxisOrder order, std::int64_t count, const ImageSides& sides);

/// A file as hickle 5 writes one array: images in c01b.
void write_hickle(const std::filesystem::path& path, std::int64_t first, std::int64_t count, const ImageSides& sides,
                  AxisOrder order = AxisOrder::c01b, const Stored& stored = {});

}  // namespace troupe::data
