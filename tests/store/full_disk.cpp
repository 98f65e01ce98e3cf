#include "tests/store/full_disk.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <stdexcept>

namespace troupe::tests {
namespace {

std::atomic<bool> is_full = false;

ssize_t write_unless_full(int file, const void* bytes, std::size_t count) {
  if (!is_full) return ::write(file, bytes, count);
  errno = ENOSPC;
  return -1;
}

ssize_t pwrite_unless_full(int file, const void* bytes, std::size_t count, off_t at) {
  if (!is_full) return ::pwrite(file, bytes, count, at);
  errno = ENOSPC;
  return -1;
}

/// Before any thread uses SQLite, which has these calls in a table for its own tests.
const bool replaced = [] {
  auto* const system = sqlite3_vfs_find(nullptr);
  const auto replace = [&](const char* name, auto* call) {
    system->xSetSystemCall(system, name, reinterpret_cast<sqlite3_syscall_ptr>(call));
  };
  replace("write", &write_unless_full);
  replace("pwrite", &pwrite_unless_full);
  replace("pwrite64", &pwrite_unless_full);
  return system->xGetSystemCall(system, "write") == reinterpret_cast<sqlite3_syscall_ptr>(&write_unless_full);
}();

}  // namespace

FullDisk::FullDisk() {
  if (!replaced) throw std::logic_error("this SQLite has no table of system calls");
  is_full = true;
}

FullDisk::~FullDisk() { is_full = false; }

}  // namespace troupe::tests
