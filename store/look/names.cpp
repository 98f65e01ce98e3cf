#include "store/look/names.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "store/look/listing.hpp"
#include "store/look/thread_pool.hpp"

namespace troupe::store {
namespace {

constexpr std::size_t kPart = 512;  // paths that a thread takes at once

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

std::int64_t time_of_change(int root, const char* path) {
  struct stat status {};
  if (::fstatat(root, path, &status, 0) != 0 || !S_ISDIR(status.st_mode)) return kNoDirectory;
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

std::vector<std::int64_t> times_of_change(int root, const std::vector<std::string_view>& paths) {
  std::vector<std::int64_t> times(paths.size());
  const auto ask = [&](std::size_t begin) {
    for (auto k = begin; k < std::min(begin + kPart, paths.size()); ++k)
      times[k] = time_of_change(root, paths[k].data());
  };
  if (paths.size() <= kPart) {
    ask(0);
    return times;
  }
  ThreadPool pool(askers_of(root));
  for (std::size_t begin = 0; begin < paths.size(); begin += kPart) pool.add([&ask, begin] { ask(begin); });
  pool.wait();
  return times;
}

}  // namespace troupe::store
