#include "transport/shm/memory/memory_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <utility>

#include <fmt/format.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1; older kernels refuse it, which costs only speed
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace troupe::transport {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kPage = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

constexpr bool wants_huge_pages(std::size_t bytes) noexcept { return bytes >= 2 * kHugePage; }

constexpr std::size_t rounded(std::size_t bytes) noexcept {
  const std::size_t page = wants_huge_pages(bytes) ? kHugePage : kPage;
  return (bytes + page - 1) / page * page;
}

/// Maps at an address where huge pages can be mapped.
ShmMapping map_shared(int fd, std::size_t bytes) noexcept {
  if (!wants_huge_pages(bytes)) {
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? ShmMapping() : ShmMapping(memory, bytes);
  }
  const std::size_t reserved = bytes + kHugePage;
  void* const space = ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return {};
  const auto begin = reinterpret_cast<std::uintptr_t>(space);
  const std::uintptr_t aligned = (begin + kHugePage - 1) / kHugePage * kHugePage;
  void* const memory =
      ::mmap(reinterpret_cast<void*>(aligned), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (memory == MAP_FAILED) {
    ::munmap(space, reserved);
    return {};
  }
  if (aligned > begin) ::munmap(space, aligned - begin);
  ::munmap(reinterpret_cast<void*>(aligned + bytes), begin + reserved - (aligned + bytes));
  return {memory, bytes};
}

/// Gets huge pages without a system setting: MADV_COLLAPSE makes them at once.
void prefer_huge_pages(const ShmMapping& mapping) noexcept {
  if (!wants_huge_pages(mapping.bytes())) return;
  ::madvise(mapping.data(), mapping.bytes(), MADV_HUGEPAGE);
  ::madvise(mapping.data(), mapping.bytes(), MADV_COLLAPSE);
}

tl::unexpected<core::Error> out_of_memory(std::size_t bytes) {
  return core::fail(
      core::Errc::out_of_memory,
      fmt::format("cannot allocate {} bytes of shared memory: use a smaller model or fewer workers", bytes));
}

/// The file is memory, but limits on files apply to it, too.
tl::unexpected<core::Error> failed_to_grow(int error_number, std::size_t bytes) {
  if (error_number == ENOMEM || error_number == ENOSPC) return out_of_memory(bytes);
  return tl::unexpected(core::from_errno(error_number, "create", fmt::format("{} bytes of shared memory", bytes)));
}

}  // namespace

ShmMapping& ShmMapping::operator=(ShmMapping&& other) noexcept {
  if (this != &other) {
    reset();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void ShmMapping::reset() noexcept {
  if (data_ != nullptr) ::munmap(std::exchange(data_, nullptr), bytes_);
}

core::Result<ShmMemoryFile> make_memory_file(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) - 2 * kHugePage)
    return out_of_memory(bytes);
  const std::size_t size = rounded(bytes);
  ShmMemoryFile file{core::FileDescriptor(::memfd_create("troupe", MFD_CLOEXEC | MFD_ALLOW_SEALING)), {}};
  if (!file.descriptor) return tl::unexpected(core::from_errno(errno, "create", "shared memory"));
  if (::ftruncate(file.descriptor.get(), static_cast<off_t>(size)) < 0) return failed_to_grow(errno, bytes);
  file.mapping = map_shared(file.descriptor.get(), size);
  if (file.mapping.data() == nullptr) return out_of_memory(bytes);
  prefer_huge_pages(file.mapping);  // before the pages exist: existing pages would be copied
  if (::fallocate(file.descriptor.get(), 0, 0, static_cast<off_t>(size)) < 0) return failed_to_grow(errno, bytes);
  ::madvise(file.mapping.data(), size, MADV_POPULATE_WRITE);
  if (::fcntl(file.descriptor.get(), F_ADD_SEALS, kSeals) < 0)
    return tl::unexpected(core::from_errno(errno, "seal", "shared memory"));
  return file;
}

core::Result<ShmMapping> map_memory_file(const core::FileDescriptor& descriptor, std::size_t bytes) {
  struct stat status {};
  const int seals = ::fcntl(descriptor.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(descriptor.get(), &status) < 0)
    return core::fail(core::Errc::corrupt, "what it shares is no sealed memory");
  const std::size_t size = rounded(bytes);
  if (bytes == 0 || status.st_size < 0 || static_cast<std::size_t>(status.st_size) < size)
    return core::fail(core::Errc::corrupt, fmt::format("it shares {} bytes of memory, not {}", status.st_size, bytes));
  ShmMapping mapping = map_shared(descriptor.get(), size);
  if (mapping.data() == nullptr) return out_of_memory(bytes);
  prefer_huge_pages(mapping);
  ::madvise(mapping.data(), size, MADV_POPULATE_WRITE);
  return mapping;
}

}  // namespace troupe::transport
