#include "tests/data/hdf5/made_hdf5.hpp"

#include <stdexcept>

namespace troupe::data {
namespace {

/// A failed call is a defect of the test.
template <class T>
T done(T result) {
  if (result < 0) throw std::runtime_error("a call of HDF5 failed");
  return result;
}

}  // namespace

MadeHdf5::MadeHdf5(const std::filesystem::path& path, hsize_t bytes_before) {
  std::filesystem::create_directories(path.parent_path());
  const hid_t creation = done(H5Pcreate(H5P_FILE_CREATE));
  if (bytes_before > 0) done(H5Pset_userblock(creation, bytes_before));
  file_ = done(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, H5P_DEFAULT));
  H5Pclose(creation);
}

MadeHdf5::~MadeHdf5() { H5Fclose(file_); }

void MadeHdf5::group(const std::string& path) const {
  H5Gclose(done(H5Gcreate2(file_, path.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)));
}

void MadeHdf5::array(const std::string& path, hid_t type, const std::vector<hsize_t>& shape, const void* values,
                     const Stored& stored) const {
  const hid_t space = done(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
  const hid_t creation = done(H5Pcreate(H5P_DATASET_CREATE));
  if (!stored.chunk.empty()) done(H5Pset_chunk(creation, static_cast<int>(stored.chunk.size()), stored.chunk.data()));
  if (stored.shuffle) done(H5Pset_shuffle(creation));
  if (stored.gzip) done(H5Pset_deflate(creation, 6));
  if (stored.filter != 0) done(H5Pset_filter(creation, stored.filter, H5Z_FLAG_OPTIONAL, 0, nullptr));
  const hid_t dataset = done(H5Dcreate2(file_, path.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  if (values) done(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
  H5Dclose(dataset);
  H5Pclose(creation);
  H5Sclose(space);
}

void MadeHdf5::write_chunk(const std::string& path, const std::vector<hsize_t>& origin, const Bytes& packed,
                           std::uint32_t skipped) const {
  const hid_t dataset = done(H5Dopen2(file_, path.c_str(), H5P_DEFAULT));
  done(H5Dwrite_chunk(dataset, H5P_DEFAULT, skipped, origin.data(), packed.size(), packed.data()));
  H5Dclose(dataset);
}

void MadeHdf5::attribute(const std::string& path, const std::string& name, const std::string& value) const {
  const hid_t object = done(H5Oopen(file_, path.c_str(), H5P_DEFAULT));
  const hid_t type = done(H5Tcopy(H5T_C_S1));
  done(H5Tset_size(type, value.size()));
  const hid_t space = done(H5Screate(H5S_SCALAR));
  const hid_t attribute = done(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT));
  done(H5Awrite(attribute, type, value.data()));
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
  H5Oclose(object);
}

Bytes made_image(std::int64_t image, const ImageSides& sides) {
  Bytes pixels;
  for (std::int64_t c = 0; c < sides[0]; ++c)
    for (std::int64_t y = 0; y < sides[1]; ++y)
      for (std::int64_t x = 0; x < sides[2]; ++x) pixels.push_back(made_pixel(image, c, y, x));
  return pixels;
}

Bytes made_images(AxisOrder order, std::int64_t first, std::int64_t count, const ImageSides& sides) {
  Bytes all;
  if (order == AxisOrder::bc01) {
    for (auto image = first; image < first + count; ++image) {
      const auto pixels = made_image(image, sides);
      all.insert(all.end(), pixels.begin(), pixels.end());
    }
    return all;
  }
  for (std::int64_t c = 0; c < sides[0]; ++c)
    for (std::int64_t y = 0; y < sides[1]; ++y)
      for (std::int64_t x = 0; x < sides[2]; ++x)
        for (auto image = first; image < first + count; ++image) all.push_back(made_pixel(image, c, y, x));
  return all;
}

std::vector<hsize_t> made_shape(AxisOrder order, std::int64_t count, const ImageSides& sides) {
  std::vector<hsize_t> shape(sides.begin(), sides.end());
  shape.insert(order == AxisOrder::c01b ? shape.end() : shape.begin(), static_cast<hsize_t>(count));
  return shape;
}

void write_hickle(const std::filesystem::path& path, std::int64_t first, std::int64_t count, const ImageSides& sides,
                  AxisOrder order, const Stored& stored) {
  const MadeHdf5 file(path);
  file.bytes("data", made_shape(order, count, sides), made_images(order, first, count, sides), stored);
}

}  // namespace troupe::data
