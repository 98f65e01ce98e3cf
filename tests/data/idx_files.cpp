#include "tests/data/idx_files.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <zlib.h>

namespace troupe::data {

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "troupe-data-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::filesystem::path& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

void write_gzip(const std::filesystem::path& path, const Bytes& bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  const bool written = file != nullptr && gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) ==
                                              static_cast<int>(bytes.size());
  if (file == nullptr || gzclose(file) != Z_OK || !written) throw std::runtime_error("cannot write " + path.string());
}

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Bytes big_endian(std::uint32_t value) {
  return {static_cast<std::uint8_t>(value >> 24), static_cast<std::uint8_t>(value >> 16),
          static_cast<std::uint8_t>(value >> 8), static_cast<std::uint8_t>(value)};
}

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Bytes images_file(std::uint32_t count) {
  Bytes bytes = big_endian(0x803) + big_endian(count) + big_endian(2) + big_endian(3);
  for (std::uint32_t i = 0; i < count; ++i)
    for (std::uint32_t p = 0; p < 6; ++p) bytes.push_back(static_cast<std::uint8_t>(10 * i + p));
  return bytes;
}

Bytes labels_file(std::uint32_t count) {
  Bytes bytes = big_endian(0x801) + big_endian(count);
  for (std::uint32_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(i % 10));
  return bytes;
}

void write_data_set(const std::filesystem::path& directory) {
  write_file(directory / "train-images-idx3-ubyte", images_file(5));
  write_file(directory / "train-labels-idx1-ubyte", labels_file(5));
  write_file(directory / "t10k-images-idx3-ubyte", images_file(3));
  write_file(directory / "t10k-labels-idx1-ubyte", labels_file(3));
}

}  // namespace troupe::data
