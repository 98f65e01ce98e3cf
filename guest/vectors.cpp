#include "guest/vectors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include <fmt/format.h>

namespace troupe::guest {
namespace {

/// Bytes that this host has left; no limit where it does not say.
std::size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;)
    if (std::size_t kilobytes = 0; word == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  return std::numeric_limits<std::size_t>::max();
}

}  // namespace

core::Result<void*> GuestVectors::allocate(std::size_t bytes) {
  const auto refuse = [&](int error) {
    return core::fail(core::Errc::out_of_memory,
                      fmt::format("{} bytes of memory to share with a program: {}", bytes, std::strerror(error)));
  };
  // The kernel does not refuse pages of a file when memory runs out: it kills a process.
  if (bytes > available_memory()) return refuse(ENOMEM);
  core::FileDescriptor file(::memfd_create("troupe-vector", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return refuse(errno);
  // Neither side can make it shorter: a read beyond the end would kill the other.
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return refuse(errno);
  int error = 0;
  do error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  while (error == EINTR);
  if (error != 0) return refuse(error);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return refuse(errno);
  const std::scoped_lock lock(mutex_);
  files_.insert_or_assign(memory, std::move(file));
  return memory;
}

void GuestVectors::deallocate(void* memory, std::size_t bytes) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    files_.erase(memory);
  }
  ::munmap(memory, bytes);
}

int GuestVectors::descriptor_of(const void* memory) const {
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(memory);
  return found == files_.end() ? -1 : found->second.get();
}

}  // namespace troupe::guest
