/// Names of directories, many of them, in memory of their own: a look at 100,000 directories must not allocate each. Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace troupe::store {

/// Texts that stay where they are until they all go together. Each has a NUL after it.
class Texts {
 public:
  [[nodiscard]] std::string_view keep(std::string_view text);
  [[nodiscard]] std::pmr::memory_resource* memory() noexcept { return &memory_; }

 private:
  static constexpr std::size_t kFirstPiece = std::size_t{64} << 10;
  std::pmr::monotonic_buffer_resource memory_{kFirstPiece};
};

/// The directories in `path` (relative to the open directory `root`), and links, which may lead to some; without hidden ones, in the file system's
/// order. Each name is kept in `texts`. Errc::io names `whole`.
[[nodiscard]] core::Result<std::vector<std::string_view>> directory_names(int root, const std::string& path,
                                                                          const std::string& whole, Texts& texts);

/// Not the time of any change: there is no directory, or it cannot be seen.
inline constexpr std::int64_t kNoDirectory = -1;

/// When `path` (relative to `root`) last changed, in ns since 1970; kNoDirectory.
[[nodiscard]] std::int64_t time_of_change(int root, const char* path);
/// When each of `paths` (relative to `root`, of Texts) last changed. Several threads ask: a file system over a network answers each question
/// late, and a local one keeps a whole processor busy.
[[nodiscard]] std::vector<std::int64_t> times_of_change(int root, const std::vector<std::string_view>& paths);

}  // namespace troupe::store
