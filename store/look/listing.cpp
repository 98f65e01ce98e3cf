#include "store/look/listing.hpp"

#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>

namespace troupe::store {
namespace {

/// Local file systems that change the time with every name: ext2 to ext4, XFS, Btrfs, F2FS, ZFS, bcachefs, tmpfs, overlayfs. FAT does not, and of those over a
/// network the time may be old.
constexpr std::array<std::uint32_t, 8> kKeepTime{0xef53,     0x58465342, 0x9123683e, 0xf2f52010,
                                                 0x2fc12fc1, 0xca451a4e, 0x01021994, 0x794c7630};

}  // namespace

std::int64_t time_of_listing(int directory) {
  struct statfs system {};
  struct stat status {};
  if (::fstatfs(directory, &system) != 0 || ::fstat(directory, &status) != 0) return 0;
  if (std::ranges::find(kKeepTime, static_cast<std::uint32_t>(system.f_type)) == kKeepTime.end()) return 0;
  return std::int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec;
}

}  // namespace troupe::store
