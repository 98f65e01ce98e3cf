/// A full disk, as SQLite sees it. Thread rule: one at a time, made and ended by any thread.
#pragma once

#include <cerrno>

namespace troupe::tests {

/// While it exists, what SQLite writes into files fails with `error`, in this process. Databases in memory go on.
class FullDisk {
 public:
  explicit FullDisk(int error = ENOSPC);
  ~FullDisk();
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
};

}  // namespace troupe::tests
