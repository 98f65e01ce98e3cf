/// A file that appears when it is complete, with the folders above it. Until then it has another name, and goes when it is given up.
/// Thread rule: one thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

#include "core/error.hpp"

namespace troupe::data {

class WholeFile {
 public:
  /// Makes the folders. Errc::io, no_space.
  [[nodiscard]] static core::Result<WholeFile> begin(const std::filesystem::path& path);
  WholeFile(WholeFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  WholeFile& operator=(WholeFile&&) = delete;
  ~WholeFile();

  /// What to write to.
  [[nodiscard]] std::filesystem::path temporary() const { return path_.string() + ".part"; }
  /// The file is complete and closed.
  [[nodiscard]] core::Result<void> commit();

 private:
  explicit WholeFile(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  // empty: complete, or moved from
};

/// Writes the whole file, and makes the folders above it. Errc::io, no_space; then a file that was there before is as it was.
[[nodiscard]] core::Result<void> write_whole(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace troupe::data
