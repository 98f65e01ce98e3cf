#include "store/run_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include <fmt/format.h>

namespace troupe::store {
namespace {

constexpr int kNoLink = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// Of lstat: nothing is there but something else.
bool is_other_than_regular(int directory, const std::string& name) {
  struct stat status {};
  return ::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(status.st_mode);
}

}  // namespace

bool is_regular(int directory, const std::string& name) {
  struct stat status {};
  return ::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
}

core::Result<bool> contains_runs(int directory, const std::string& name) {
  const int file = ::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> open(file < 0 ? nullptr : ::fdopendir(file), &::closedir);
  if (!open) return tl::unexpected(core::from_errno(errno, "list", name));
  errno = 0;
  while (const auto* entry = ::readdir(open.get())) {
    if (entry->d_name[0] != '.') {
      struct stat status {};
      const auto config = fmt::format("{}/config.toml", entry->d_name);
      if (::fstatat(::dirfd(open.get()), config.c_str(), &status, 0) == 0) return true;
    }
    errno = 0;
  }
  if (errno != 0) return tl::unexpected(core::from_errno(errno, "list", name));
  return false;
}

core::Result<RunDirectory> open_run_directory(const std::string& root, const std::string& path) {
  const auto whole = root + "/" + path;
  const auto no_run = [&](const std::string& why) {
    return core::fail(core::Errc::config, fmt::format("{} is not the directory of a run: {}", whole, why));
  };
  const auto parts = parts_of(path);
  const auto is_bad = [](const std::string& part) { return part.empty() || part[0] == '.'; };
  if (parts.size() > 2 || std::ranges::any_of(parts, is_bad)) return no_run("it must be RUN or GRID/RUN");
  RunDirectory found;
  found.run.reset(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!found.run) return tl::unexpected(core::from_errno(errno, "open", root));
  for (const auto& part : parts) {
    found.parent = std::move(found.run);
    found.run.reset(::openat(found.parent.get(), part.c_str(), kNoLink));
    if (found.run) continue;
    const int error = errno;
    if (error == ENOENT) return no_run("there is no " + part);
    if (error == ENOTDIR || error == ELOOP) return no_run(part + " is a symbolic link or a file");
    return tl::unexpected(core::from_errno(error, "open", whole));
  }
  found.name = parts.back();
  const int run = found.run.get();
  if (!is_regular(run, "config.toml")) return no_run("it has no config.toml");
  if (is_other_than_regular(run, ".lock") || is_other_than_regular(run, "metrics.jsonl"))
    return no_run("its .lock or metrics.jsonl is no file");
  if (!is_regular(run, "metrics.jsonl") && !is_regular(run, ".lock"))
    return no_run("it has neither a metrics.jsonl nor a .lock");
  const auto is_grid = contains_runs(run, ".");
  if (!is_grid) return core::fail(is_grid.error().code, fmt::format("{}: {}", whole, is_grid.error().message));
  if (*is_grid) return no_run("there are runs in it");
  return found;
}

}  // namespace troupe::store
