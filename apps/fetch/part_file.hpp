/// A file that is being fetched: NAME.part, until it is complete. What is there stays there when the process ends in the middle. One process
/// at a time has it. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <stop_token>
#include <string>

#include "core/error.hpp"
#include "core/file_descriptor.hpp"

namespace troupe::fetch {

/// SHA-256 in 64 small hexadecimal digits. Errc::io; interrupted.
[[nodiscard]] core::Result<std::string> sha256_of(const std::filesystem::path& path, const std::stop_token& stop);

class PartFile {
 public:
  /// Continues what is there. Errc::io, no_space; config: another process has it.
  [[nodiscard]] static core::Result<PartFile> open(const std::filesystem::path& file);

  [[nodiscard]] std::filesystem::path path() const { return file_.string() + ".part"; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Appends. After an Error the bytes that were written are counted. Errc::no_space, io.
  [[nodiscard]] core::Result<void> append(std::span<const char> bytes);
  /// Begins again.
  [[nodiscard]] core::Result<void> clear();
  /// It is complete: gets its name, and what it holds is on the disk.
  [[nodiscard]] core::Result<void> commit();

 private:
  PartFile(std::filesystem::path file, core::FileDescriptor descriptor, std::uint64_t size)
      : file_(std::move(file)), descriptor_(std::move(descriptor)), size_(size) {}
  std::filesystem::path file_;
  core::FileDescriptor descriptor_;
  std::uint64_t size_ = 0;
};

}  // namespace troupe::fetch
