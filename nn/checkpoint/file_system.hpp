/// The system calls behind durable files, one by one, so that tests can make each of them fail or crash after it. Every call names
/// files by path, for its Error. Implementations are thread-safe for different files.
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

  /// Creates a file and opens it for writing. Fails if `path` exists: a file whose sync failed must not be written again.
  [[nodiscard]] virtual core::Result<int> create(const std::string& path) = 0;
  /// Writes all of `bytes`, or returns an Error.
  [[nodiscard]] virtual core::Result<void> write(int file, Bytes bytes, const std::string& path) = 0;
  /// After an Error the file's contents remain unknown: a second sync may wrongly succeed.
  [[nodiscard]] virtual core::Result<void> sync(int file, const std::string& path) = 0;
  /// Closes the descriptor even if this fails.
  [[nodiscard]] virtual core::Result<void> close(int file, const std::string& path) = 0;
  /// Creates `to` with the bytes of `from`, synced. Fails if `to` exists. After an Error `to` may remain, incomplete. Calls `moved`
  /// repeatedly while the copy progresses.
  [[nodiscard]] virtual core::Result<void> copy(const std::string& from, const std::string& to,
                                                const std::function<void()>& moved) = 0;
  /// Replaces `to` atomically.
  [[nodiscard]] virtual core::Result<void> rename(const std::string& from, const std::string& to) = 0;
  [[nodiscard]] virtual core::Result<void> sync_directory(const std::string& path) = 0;
  /// Succeeds if the file does not exist.
  [[nodiscard]] virtual core::Result<void> remove(const std::string& path) = 0;
  [[nodiscard]] virtual core::Result<void> create_directories(const std::string& path) = 0;
  /// The names in a directory, sorted.
  [[nodiscard]] virtual core::Result<std::vector<std::string>> list(const std::string& path) = 0;
  /// The contents of a regular file.
  [[nodiscard]] virtual core::Result<std::vector<std::byte>> read(const std::string& path) = 0;
};

/// The operating system's files. Errors are core::from_errno: no_space for a full disk, otherwise io.
[[nodiscard]] FileSystem& system_files() noexcept;

/// The temporary of replace_file is NAME.HOST-PID-TOKEN-COUNT.tmp: no two writers in any processes on any hosts share one. TOKEN is
/// drawn once per process, because hosts with the same name may share a directory.
inline constexpr std::string_view kTemporarySuffix = ".tmp";

/// Writes `parts` in order into directory/name, atomically: a reader, now or after a crash at any point, finds the old contents or
/// all of the new ones. Temporary file in the same directory → write → fsync → rename → fsync of the directory. After an Error no
/// temporary remains (unless its removal fails too). A failed fsync is not tried again: another call writes a new file. A killed
/// writer leaves its temporary: remove_temporaries().
[[nodiscard]] core::Result<void> replace_file(FileSystem& files, const std::string& directory, const std::string& name,
                                              std::span<const Bytes> parts);

/// The same with the contents of the file `from`, piece by piece.
[[nodiscard]] core::Result<void> replace_by_copy(FileSystem& files, const std::string& from,
                                                 const std::string& directory, const std::string& name);

/// Removes the temporaries in `directory`. REQUIRES the directory's lock, so that no writer is active and every temporary is from a
/// killed writer. The Error is that of the listing; a temporary that cannot be removed stays.
[[nodiscard]] core::Result<void> remove_temporaries(FileSystem& files, const std::string& directory);

}  // namespace troupe::nn
