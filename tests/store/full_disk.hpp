/// A full disk, as SQLite sees it. Thread rule: one at a time, made and ended by any thread.
#pragma once

namespace troupe::tests {

/// While it exists, what SQLite writes into files fails with ENOSPC, in this process. Databases in memory go on.
class FullDisk {
 public:
  FullDisk();
  ~FullDisk();
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
};

}  // namespace troupe::tests
