#include "tests/nn/checkpoint/memory_files.hpp"

#include <cerrno>
#include <set>
#include <utility>

namespace troupe::nn {
namespace {

tl::unexpected<core::Error> error(int number, const std::string& call, const std::string& path) {
  return tl::unexpected(core::from_errno(number, call, path));
}

bool lies_in(const std::string& path, const std::string& directory) {
  return path.starts_with(directory + "/") && path.find('/', directory.size() + 1) == std::string::npos;
}

}  // namespace

void MemoryFiles::fail_at(int n, int error_number, bool and_all_after) {
  calls_ = 0;
  fail_call_ = n;
  error_number_ = error_number;
  and_all_after_ = and_all_after;
  failed_ = false;
}

core::Result<void> MemoryFiles::enter(const std::string& call, const std::string& path) {
  if (auto hook = std::exchange(hook_, nullptr)) {
    hook(call + " " + path);
    if (!hook_) hook_ = std::move(hook);
  }
  log_.push_back(call + " " + path);
  ++calls_;
  if (fail_call_ == 0 || calls_ < fail_call_ || (calls_ > fail_call_ && !and_all_after_)) return {};
  failed_ = true;
  return error(error_number_, call, path);
}

std::size_t MemoryFiles::used() const {
  std::set<std::shared_ptr<File>> files;
  for (const auto& [path, file] : entries_) files.insert(file);
  for (const auto& [number, file] : open_) files.insert(file);
  std::size_t bytes = 0;
  for (const auto& file : files) bytes += file->bytes.size();
  return bytes;
}

void MemoryFiles::crash(core::Random& random) {
  open_.clear();
  std::set<std::string> paths;
  for (const auto& [path, file] : entries_) paths.insert(path);
  for (const auto& [path, file] : safe_entries_) paths.insert(path);
  Entries survivors;
  for (const auto& path : paths) {
    const auto& from = random.below(2) == 0 ? entries_ : safe_entries_;
    const auto it = from.find(path);
    if (it == from.end()) continue;
    auto file = std::make_shared<File>(*it->second);
    if (file->bytes != file->synced) {
      switch (random.below(3)) {
        case 0: file->bytes = file->synced; break;
        case 1: file->bytes.resize(random.below(file->bytes.size() + 1)); break;
        default:
          std::fill(file->bytes.begin() + static_cast<std::ptrdiff_t>(random.below(file->bytes.size() + 1)),
                    file->bytes.end(), std::byte{0});
      }
    }
    file->synced = file->bytes;
    survivors[path] = std::move(file);
  }
  entries_ = survivors;
  safe_entries_ = survivors;
}

core::Result<int> MemoryFiles::create(const std::string& path) {
  if (auto r = enter("create", path); !r) return tl::unexpected(r.error());
  if (entries_.contains(path)) return error(EEXIST, "create", path);
  open_[next_file_] = entries_[path] = std::make_shared<File>();
  return next_file_++;
}

core::Result<void> MemoryFiles::write(int file, Bytes bytes, const std::string& path) {
  auto result = enter("write", path);
  const auto it = open_.find(file);
  if (it == open_.end()) {
    violations_.push_back("write to a closed file " + path);
    return result;
  }
  std::size_t count = result ? bytes.size() : bytes.size() / 2;
  if (capacity_) {
    const std::size_t room = *capacity_ - std::min(*capacity_, used());
    if (count > room) {
      count = room;
      failed_ = true;
      result = error(ENOSPC, "write", path);
    }
  }
  it->second->bytes.insert(it->second->bytes.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
  return result;
}

core::Result<void> MemoryFiles::sync(int file, const std::string& path) {
  auto& opened = *open_.at(file);
  if (opened.sync_failed) violations_.push_back("second sync of " + path);
  auto result = enter("sync", path);
  if (result)
    opened.synced = opened.bytes;
  else
    opened.sync_failed = true;
  return result;
}

core::Result<void> MemoryFiles::close(int file, const std::string& path) {
  open_.erase(file);  // also when it fails, as in Linux
  return enter("close", path);
}

core::Result<void> MemoryFiles::copy(const std::string& from, const std::string& to,
                                     const std::function<void()>& moved) {
  const auto whole = read(from);
  if (!whole) return tl::unexpected(whole.error());
  const auto file = create(to);
  if (!file) return tl::unexpected(file.error());
  auto result = write(*file, *whole, to);
  moved();
  if (result) result = sync(*file, to);
  const auto closed = close(*file, to);
  return result ? closed : result;
}

core::Result<void> MemoryFiles::rename(const std::string& from, const std::string& to) {
  if (auto r = enter("rename", to); !r) return r;
  const auto it = entries_.find(from);
  if (it == entries_.end()) return error(ENOENT, "rename", to);
  if (it->second->sync_failed) violations_.push_back("rename of a file that was not synced to " + to);
  entries_[to] = it->second;
  entries_.erase(it);
  return {};
}

core::Result<void> MemoryFiles::sync_directory(const std::string& path) {
  if (auto r = enter("sync_directory", path); !r) return r;
  std::erase_if(safe_entries_, [&](const auto& entry) { return lies_in(entry.first, path); });
  for (const auto& [name, file] : entries_)
    if (lies_in(name, path)) safe_entries_[name] = file;
  return {};
}

core::Result<void> MemoryFiles::remove(const std::string& path) {
  if (auto r = enter("remove", path); !r) return r;
  entries_.erase(path);
  return {};
}

core::Result<void> MemoryFiles::create_directories(const std::string& path) {
  return enter("create_directories", path);
}

core::Result<std::vector<std::string>> MemoryFiles::list(const std::string& path) {
  if (auto r = enter("list", path); !r) return tl::unexpected(r.error());
  std::vector<std::string> names;
  for (const auto& [name, file] : entries_)
    if (lies_in(name, path)) names.push_back(name.substr(path.size() + 1));
  return names;
}

core::Result<std::vector<std::byte>> MemoryFiles::read(const std::string& path) {
  if (auto r = enter("read", path); !r) return tl::unexpected(r.error());
  const auto it = entries_.find(path);
  if (it == entries_.end()) return error(ENOENT, "open", path);
  return it->second->bytes;
}

}  // namespace troupe::nn
