#include "gpu/device/memory/host_sharing.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include <fmt/format.h>

#include "gpu/device/memory/host_memory.hpp"

namespace troupe::gpu::host {
namespace {

/// "NAME PID DESCRIPTOR DEVICE INODE": the last two tell a descriptor that was closed and used again.
struct Handle {
  std::string name;
  long process = 0;
  int descriptor = -1;
  unsigned long long device = 0, inode = 0;

  [[nodiscard]] std::string text() const {
    return fmt::format("{} {} {} {} {}", name, process, descriptor, device, inode);
  }
  [[nodiscard]] static bool parse(const std::string& text, Handle& handle) {
    std::istringstream in(text);
    return static_cast<bool>(in >> handle.name >> handle.process >> handle.descriptor >> handle.device >> handle.inode);
  }
};

/// Files are of whole units, so that a handle stands for allocations of different lengths in turn, as a block of CUDA's does.
constexpr std::size_t kUnit = 4096;

std::string error_text() { return std::strerror(errno); }

void* map(int descriptor, std::size_t bytes) {
  return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
}

}  // namespace

void SharedRanges::add(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  ranges_.insert_or_assign(reinterpret_cast<std::uintptr_t>(memory), bytes);
}

void SharedRanges::remove(const void* memory) {
  const std::lock_guard lock(mutex_);
  ranges_.erase(reinterpret_cast<std::uintptr_t>(memory));
}

bool SharedRanges::contains(const void* memory, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::lock_guard lock(mutex_);
  const auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return false;
  const auto& [begin, size] = *std::prev(next);
  return address - begin <= size && bytes <= size - (address - begin);
}

HostSharing::HostSharing(std::shared_ptr<SharedRanges> ranges, std::string name, std::size_t limit, bool hides)
    : ranges_(std::move(ranges)), name_(std::move(name)), limit_(limit), hides_(hides) {}

HostSharing::~HostSharing() {
  for (const auto& [memory, file] : files_) {
    ranges_->remove(memory);
    (void)::munmap(found(memory), file.bytes);
    (void)::close(file.descriptor);
  }
}

tl::unexpected<core::Error> HostSharing::no_memory(std::size_t bytes) const {
  return core::fail(core::Errc::out_of_memory,
                    fmt::format("cannot allocate {} bytes of the device's memory for other processes, of which {} of "
                                "{} are in use",
                                bytes, bytes_, limit_));
}

core::Result<void*> HostSharing::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > limit_) return no_memory(bytes);
  const std::size_t rounded = (bytes + kUnit - 1) / kUnit * kUnit;
  for (auto& [memory, file] : files_) {
    if (file.in_use > 0 || file.bytes != rounded) continue;
    file.in_use = bytes;
    std::memset(found(memory), 0, bytes);
    ranges_->add(memory, bytes);
    return memory;
  }
  if (bytes > limit_ - std::min(bytes_, limit_)) return no_memory(bytes);
  const int descriptor = ::memfd_create("troupe-device", MFD_CLOEXEC);
  if (descriptor < 0) return core::fail(core::Errc::io, fmt::format("memfd_create: {}", error_text()));
  void* memory = MAP_FAILED;
  if (::ftruncate(descriptor, static_cast<off_t>(rounded)) == 0) memory = map(descriptor, rounded);
  if (memory == MAP_FAILED) {
    auto failed =
        core::fail(core::Errc::out_of_memory, fmt::format("a memory file of {} bytes: {}", bytes, error_text()));
    (void)::close(descriptor);
    return failed;
  }
  if (hides_) memory = hidden(memory);
  files_.emplace(memory, File{descriptor, rounded, bytes});
  bytes_ += rounded;
  ranges_->add(memory, bytes);
  return memory;
}

void HostSharing::deallocate(void* memory, std::size_t /*bytes*/) noexcept {
  const std::lock_guard lock(mutex_);
  const auto file = files_.find(memory);
  if (file == files_.end()) return;
  file->second.in_use = 0;
  ranges_->remove(memory);
}

core::Result<std::string> HostSharing::handle_of(void* allocation) {
  const std::lock_guard lock(mutex_);
  const auto file = files_.find(allocation);
  struct stat status {};
  if (file == files_.end() || file->second.in_use == 0 || ::fstat(file->second.descriptor, &status) != 0)
    return core::fail(core::Errc::io, "a handle of what is no allocation of shared device memory");
  return Handle{name_, ::getpid(), file->second.descriptor, status.st_dev, status.st_ino}.text();
}

core::Result<std::shared_ptr<void>> HostSharing::open(const std::string& text, std::size_t bytes) {
  Handle handle;
  if (!Handle::parse(text, handle)) return core::fail(core::Errc::config, "it is no handle of device memory");
  if (handle.name != name_)
    return core::fail(
        core::Errc::config,
        fmt::format("the memory is of devices that share as \"{}\", this one as \"{}\"", handle.name, name_));
  const auto path = fmt::format("/proc/{}/fd/{}", handle.process, handle.descriptor);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0)
    return core::fail(core::Errc::config, fmt::format("the memory of process {}: {}", handle.process, error_text()));
  struct stat status {};
  const bool same = ::fstat(descriptor, &status) == 0 && status.st_dev == handle.device &&
                    status.st_ino == handle.inode && static_cast<std::size_t>(status.st_size) >= bytes;
  void* memory = same ? map(descriptor, bytes) : MAP_FAILED;
  auto why = same ? error_text() : std::string("it is gone, or shorter");
  (void)::close(descriptor);
  if (memory == MAP_FAILED)
    return core::fail(core::Errc::config, fmt::format("the memory of process {}: {}", handle.process, why));
  if (hides_) memory = hidden(memory);
  ranges_->add(memory, bytes);
  return std::shared_ptr<void>(memory, [ranges = ranges_, bytes](void* mapped) {
    ranges->remove(mapped);
    (void)::munmap(found(mapped), bytes);
  });
}

}  // namespace troupe::gpu::host
