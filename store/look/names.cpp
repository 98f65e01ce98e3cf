#include "store/look/names.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>

namespace troupe::store {
namespace {

constexpr std::size_t kPart = 512;       // paths that a thread takes at once
constexpr std::size_t kMostThreads = 8;  // what a file server is asked at once

std::int64_t time_of_change(int root, const char* path) {
  struct stat status {};
  if (::fstatat(root, path, &status, 0) != 0 || !S_ISDIR(status.st_mode)) return kNoDirectory;
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

std::string_view Texts::keep(std::string_view text) {
  auto* bytes = static_cast<char*>(memory_.allocate(text.size() + 1, 1));
  std::memcpy(bytes, text.data(), text.size());
  bytes[text.size()] = '\0';
  return {bytes, text.size()};
}

core::Result<std::vector<std::string_view>> directory_names(int root, const std::string& path, const std::string& whole,
                                                            Texts& texts) {
  const int file = ::openat(root, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> open(file < 0 ? nullptr : ::fdopendir(file), &::closedir);
  if (!open) return tl::unexpected(core::from_errno(errno, "list", whole));
  std::vector<std::string_view> names;
  errno = 0;
  while (const auto* entry = ::readdir(open.get())) {
    const bool may_be = entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
    if (may_be && entry->d_name[0] != '.') names.push_back(texts.keep(entry->d_name));
  }
  if (errno != 0) return tl::unexpected(core::from_errno(errno, "list", whole));
  return names;
}

std::vector<std::int64_t> times_of_change(int root, const std::vector<std::string_view>& paths) {
  std::vector<std::int64_t> times(paths.size());
  std::atomic<std::size_t> taken = 0;
  const auto ask = [&] {
    for (;;) {
      const auto begin = taken.fetch_add(kPart);
      if (begin >= paths.size()) return;
      for (auto k = begin; k < std::min(begin + kPart, paths.size()); ++k)
        times[k] = time_of_change(root, paths[k].data());
    }
  };
  std::vector<std::jthread> others;
  try {
    while (others.size() + 1 < std::min(kMostThreads, paths.size() / kPart)) others.emplace_back(ask);
  } catch (const std::system_error&) {
    // No more threads are to be had: those that are there ask for all.
  }
  ask();
  others.clear();  // waits for them
  return times;
}

}  // namespace troupe::store
