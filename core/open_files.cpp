#include "core/open_files.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace troupe::core {
namespace {

constexpr rlim_t kMost = rlim_t{1} << 20;

rlim_t soft_limit_at_start = 0;  // 0: it was not raised

}  // namespace

void raise_open_files_limit() noexcept {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const rlim_t wanted = std::min(files.rlim_max, kMost);
  if (files.rlim_cur >= wanted) return;
  const rlim_t before = files.rlim_cur;
  files.rlim_cur = wanted;
  if (::setrlimit(RLIMIT_NOFILE, &files) == 0 && soft_limit_at_start == 0) soft_limit_at_start = before;
}

void restore_open_files_limit(pid_t child) noexcept {
  rlimit files{};
  if (soft_limit_at_start == 0 || ::prlimit(child, RLIMIT_NOFILE, nullptr, &files) != 0) return;
  files.rlim_cur = std::min(files.rlim_max, soft_limit_at_start);
  ::prlimit(child, RLIMIT_NOFILE, &files, nullptr);
}

std::uint64_t open_files_limit() noexcept {
  rlimit files{};
  return ::getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace troupe::core
