/// The system calls behind durable files, one by one, so that tests can make any of them fail or crash after it.
/// Files are named by path in every call: that is what an Error shows. Implementations are thread-safe for different files.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace troupe::nn {

using Bytes = std::span<const std::byte>;

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// A new file, open for writing. Fails when `path` exists: what a failed sync left behind must not be written again.
  [[nodiscard]] virtual core::Result<int> create(const std::string& path) = 0;
  /// All of `bytes` or an Error.
  [[nodiscard]] virtual core::Result<void> write(int file, Bytes bytes, const std::string& path) = 0;
  /// After an Error the file's contents are unknown for good: a second sync may wrongly succeed.
  [[nodiscard]] virtual core::Result<void> sync(int file, const std::string& path) = 0;
  /// The descriptor is gone even when this fails.
  [[nodiscard]] virtual core::Result<void> close(int file, const std::string& path) = 0;
  /// A new file `to` with the bytes of `from`, synced. Fails when `to` exists; after an Error it may be left, in part. `moved` is called
  /// again and again while the copy gets ahead.
  [[nodiscard]] virtual core::Result<void> copy(const std::string& from, const std::string& to,
                                                const std::function<void()>& moved) = 0;
  /// Replaces `to` atomically.
  [[nodiscard]] virtual core::Result<void> rename(const std::string& from, const std::string& to) = 0;
  [[nodiscard]] virtual core::Result<void> sync_directory(const std::string& path) = 0;
  /// A file that is not there is removed already.
  [[nodiscard]] virtual core::Result<void> remove(const std::string& path) = 0;
  [[nodiscard]] virtual core::Result<void> create_directories(const std::string& path) = 0;
  /// Names of what is in a directory, sorted.
  [[nodiscard]] virtual core::Result<std::vector<std::string>> list(const std::string& path) = 0;
  /// The whole of a regular file.
  [[nodiscard]] virtual core::Result<std::vector<std::byte>> read(const std::string& path) = 0;
};

/// The real one. Errors are core::from_errno: no_space for a full disk, io for the rest.
[[nodiscard]] FileSystem& system_files() noexcept;

/// What replace_file writes until the contents are safe is NAME.HOST-PID-TOKEN-COUNT.tmp: no two writers, of any process on any host,
/// ever share one. TOKEN is drawn once per process, as hosts of one name may share a directory.
inline constexpr std::string_view kTemporarySuffix = ".tmp";

/// Puts `parts`, one after the other, into directory/name so that whoever opens it, now or after a crash at any point, finds the
/// old contents or the new, whole: temporary file in the same directory → write → fsync → rename → fsync of the directory.
/// After an Error no temporary is left (unless removing fails too) and a failed fsync is not tried again: call once more, and a
/// new file is written. A writer that is killed leaves its temporary: remove_temporaries().
[[nodiscard]] core::Result<void> replace_file(FileSystem& files, const std::string& directory, const std::string& name,
                                              std::span<const Bytes> parts);

/// The same with the contents of the file `from`, a piece at a time.
[[nodiscard]] core::Result<void> replace_by_copy(FileSystem& files, const std::string& from,
                                                 const std::string& directory, const std::string& name);

/// Removes the temporaries in `directory`. REQUIRES that nobody else writes there: it is the holder of the directory's lock who may
/// take them for those of a writer that was killed. The Error is that of the listing; a temporary that cannot be removed stays.
[[nodiscard]] core::Result<void> remove_temporaries(FileSystem& files, const std::string& directory);

}  // namespace troupe::nn
