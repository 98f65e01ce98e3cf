#include "tests/store/full_disk.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <stdexcept>

namespace troupe::tests {
namespace {

std::atomic<int> refusal = 0;  // 0: none

ssize_t write_unless_full(int file, const void* bytes, std::size_t count) {
  if (refusal == 0) return ::write(file, bytes, count);
  errno = refusal;
  return -1;
}

ssize_t pwrite_unless_full(int file, const void* bytes, std::size_t count, off_t at) {
  if (refusal == 0) return ::pwrite(file, bytes, count, at);
  errno = refusal;
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

FullDisk::FullDisk(int error) {
  if (!replaced) throw std::logic_error("this SQLite has no table of system calls");
  refusal = error;
}

FullDisk::~FullDisk() { refusal = 0; }

}  // namespace troupe::tests
