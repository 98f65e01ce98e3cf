/// Unpacks an archive that a user has sent. The archive is not trusted: it can write within one folder only. Thread rule: no shared state.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>

#include "core/error.hpp"

namespace troupe::service {

struct UnpackLimits {
  std::uint64_t bytes = 0;          // of all files together
  std::uint64_t reserve = 0;        // bytes that stay free on the disk
  std::uint64_t entries = 2000000;  // files and folders
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

/// The bytes of files that `archive` had: a zip (stored or deflated), or a tar, plain or compressed by gzip or zstd, told by content. They
/// are written into the empty folder `into`. Hidden files and `__MACOSX` are left out.
/// Errc::data: it is none of these, damaged, encrypted, has more than `limits` allows, a link, a device, a name twice, an absolute path or
/// one with `..`; no_space; io; timeout; interrupted after a request of `stop`. Then `into` has a part of it, and nothing is elsewhere.
[[nodiscard]] core::Result<std::uint64_t> unpack(int archive, const std::string& into, const UnpackLimits& limits,
                                                 const std::stop_token& stop);

/// How many bytes of the disk that has `path` a process without privileges may still use, and how many it has. Errc::io.
struct DiskSpace {
  std::uint64_t free = 0, all = 0;
};
[[nodiscard]] core::Result<DiskSpace> disk_space(const std::string& path);

}  // namespace troupe::service
