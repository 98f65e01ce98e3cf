/// The right to write into a directory, a run's or a grid's: one holder at a time. It ends with its holder, however that ends: the
/// kernel gives it back, and no file has to be removed. Readers need none. What is promised where: docs/formats/run-directory.md.
#pragma once

#include <fcntl.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace troupe::experiment {

/// A lock on one byte of `<directory>/.lock`, whose only line says who has it. The lock belongs to the open file (F_OFD_SETLK), so
/// that two holders in one process exclude each other as well; it is never passed on to a program that the holder starts.
/// Movable; one thread at a time.
class DirectoryLock {
 public:
  static constexpr std::string_view kFile = ".lock";

  /// fcntl(2), or a test's.
  using Call = int (*)(int file, int command, struct flock* what);

  /// Does not wait. Errc::timeout when another has it: names who, as far as that is known, and where. Errc::io or no_space when the
  /// file cannot be opened to write.
  [[nodiscard]] static core::Result<DirectoryLock> take(const std::string& directory, Call call = &system_call);

  /// Who has it: "process 4711 on host h1"; nothing: nobody. Opens nothing to write, and is in nobody's way. Where no lock can be
  /// had nobody has one. Errc::io.
  [[nodiscard]] static core::Result<std::optional<std::string>> holder(const std::string& directory,
                                                                       Call call = &system_call);

  /// Why it keeps nobody out, in one line for a warning; empty: it does. Some network file systems have no locks.
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
