/// The exclusive right to write into a run's or a grid's directory. The kernel releases it when its holder ends in any way; no file has to
/// be removed. Readers need no lock. Guarantees per file system: docs/formats/run-directory.md.
#pragma once

#include <fcntl.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace troupe::experiment {

/// A lock on one byte of `<directory>/.lock`; the file's only line names the holder. The lock belongs to the open file (F_OFD_SETLK): two
/// holders in one process exclude each other too, and programs that the holder starts do not inherit it. Movable; one thread at a time.
class DirectoryLock {
 public:
  static constexpr std::string_view kFile = ".lock";

  /// fcntl(2), or a test's replacement.
  using Call = int (*)(int file, int command, struct flock* what);

  /// Does not wait. Errc::timeout when another holder has it: the message names the holder, if known, and the directory. Errc::io or
  /// no_space when the file cannot be opened for writing.
  [[nodiscard]] static core::Result<DirectoryLock> take(const std::string& directory, Call call = &system_call);

  /// The holder, "process 4711 on host h1"; nothing when there is none, or the file system has no locks. Opens nothing for writing and
  /// blocks no other process. Errc::io.
  [[nodiscard]] static core::Result<std::optional<std::string>> holder(const std::string& directory,
                                                                       Call call = &system_call);

  /// Why the lock excludes no other holder, as one line for a warning; empty: it does. Some network file systems have no locks.
  [[nodiscard]] const std::string& missing() const noexcept { return missing_; }

  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&& other) noexcept;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int file) : file_(file) {}
  static int system_call(int file, int command, struct flock* what);

  int file_ = -1;
  std::string missing_;
};

}  // namespace troupe::experiment
