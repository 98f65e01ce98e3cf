/// The whole lines of a file that grows. Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/file_descriptor.hpp"

namespace troupe::service {

/// A line without its newline, and the byte position behind it.
using OnLine = std::function<void(std::string_view line, std::uint64_t end)>;

class FollowedFile {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
  static constexpr std::size_t kLongestLine = std::size_t{64} << 20;  // a longer one is passed over

  explicit FollowedFile(core::FileDescriptor file, std::uint64_t position = 0)
      : file_(std::move(file)), position_(position) {}

  /// Reads one piece and reports the lines that end in it. Returns whether there may be more. A file that has become shorter is read from
  /// its new end. Errc::io.
  [[nodiscard]] core::Result<bool> read(const OnLine& on_line);

  /// Behind the last line that was reported.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] int file() const noexcept { return file_.get(); }

 private:
  core::FileDescriptor file_;
  std::uint64_t position_ = 0;
  std::string part_;  // of a line that is longer than a piece, from position_ on
};

}  // namespace troupe::service
