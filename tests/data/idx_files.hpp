/// IDX files for tests, byte by byte, in a directory that its owner removes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::data {

using Bytes = std::vector<std::uint8_t>;

/// A new empty directory, removed with its contents.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void write_file(const std::filesystem::path& path, const Bytes& bytes);
void write_gzip(const std::filesystem::path& path, const Bytes& bytes);
[[nodiscard]] Bytes read_file(const std::filesystem::path& path);

/// The four bytes of a big-endian number.
[[nodiscard]] Bytes big_endian(std::uint32_t value);
[[nodiscard]] Bytes operator+(Bytes a, const Bytes& b);

/// `count` images of 2 rows × 3 columns: pixel p of image i is 10·i + p.
[[nodiscard]] Bytes images_file(std::uint32_t count);
/// `count` labels: label i is i % 10.
[[nodiscard]] Bytes labels_file(std::uint32_t count);

/// Training and test files of 5 and 3 samples, uncompressed, under their published names.
void write_data_set(const std::filesystem::path& directory);

}  // namespace troupe::data
