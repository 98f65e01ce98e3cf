#include "store/look/listing.hpp"

#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <thread>

namespace troupe::store {
namespace {

/// Local file systems that change the time with every name: ext2 to ext4, XFS, Btrfs, F2FS, ZFS, bcachefs, tmpfs, overlayfs. FAT does not, and of those over a
/// network the time may be old.
constexpr std::array<std::uint32_t, 8> kKeepTime{0xef53,     0x58465342, 0x9123683e, 0xf2f52010,
                                                 0x2fc12fc1, 0xca451a4e, 0x01021994, 0x794c7630};

constexpr std::size_t kFewestAskers = 4, kMostAskers = 8;

bool is_local(int directory) {
  struct statfs system {};
  return ::fstatfs(directory, &system) == 0 &&
         std::ranges::find(kKeepTime, static_cast<std::uint32_t>(system.f_type)) != kKeepTime.end();
}

}  // namespace

std::size_t askers_of(int directory) {
  if (!is_local(directory)) return kMostAskers;
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), kFewestAskers, kMostAskers);
}

std::int64_t time_of_listing(int directory) {
  struct stat status {};
  if (!is_local(directory) || ::fstat(directory, &status) != 0) return 0;
  return std::int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec;
}

}  // namespace troupe::store
