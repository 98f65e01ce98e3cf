/// A file descriptor with one owner, which closes it. Thread rule: a value; one thread at a time.
#pragma once

#include <unistd.h>

#include <utility>

namespace troupe::core {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~FileDescriptor() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  /// Passes ownership to the caller, which must close it.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  /// Closes the present descriptor, then owns `fd`.
  void reset(int fd = -1) noexcept {
    if (const int old = std::exchange(fd_, fd); old >= 0) ::close(old);
  }

 private:
  int fd_ = -1;
};

}  // namespace troupe::core
