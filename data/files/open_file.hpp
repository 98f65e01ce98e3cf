/// A file for reading at any place, by several threads at once. Owns the descriptor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace troupe::data {

class OpenFile {
 public:
  /// Errc::data: it is not there, or no regular file; io: not readable for this user, or another failure.
  [[nodiscard]] static core::Result<OpenFile> open(const std::filesystem::path& path);
  OpenFile(OpenFile&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile();

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }  ///< bytes, when it was opened
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Fills `bytes` from `offset` on. Errc::data: the file ends before; io: a failed read. Thread-safe.
  [[nodiscard]] core::Result<void> read(std::uint64_t offset, std::span<std::uint8_t> bytes) const;

 private:
  OpenFile(std::string path, int descriptor, std::uint64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// The error of OpenFile::read() for the record `where` ("file: record 3"): names it if the file has become too short.
[[nodiscard]] core::Error of_record(const core::Error& error, const std::string& where);

}  // namespace troupe::data
