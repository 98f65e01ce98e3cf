#include "service/datasets/uploads.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "data/registry.hpp"
#include "service/datasets/unpack.hpp"

namespace troupe::service {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLookEvery = std::uint64_t{64} << 20;  // bytes between two looks at the disk

/// What stays free for runs and their checkpoints.
std::uint64_t reserve_of(const DiskSpace& space) { return std::min(std::uint64_t{1} << 30, space.all / 20); }

core::Result<core::FileDescriptor> file_without_name(const std::string& folder) {
  core::FileDescriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  auto path = folder + "/.body-XXXXXX";  // file systems without O_TMPFILE
  file.reset(::mkostemp(path.data(), O_CLOEXEC));
  if (!file) return tl::unexpected(core::from_errno(errno, "make a file in", folder));
  ::unlink(path.c_str());
  return file;
}

/// Archives often have all in one folder of any name: that is the data set then, unless it is a split.
std::string inner_folder(const std::string& root) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error)) entries.push_back(entry.path());
  if (error || entries.size() != 1 || !fs::is_directory(entries.front(), error)) return {};
  const auto name = entries.front().filename().string();
  const bool is_split = name.starts_with("train") || name.starts_with("test") || name.starts_with("val");
  return is_split ? std::string() : "/" + name;
}

core::Result<void> sync_disk(const std::string& folder) {
  const core::FileDescriptor open(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!open || ::syncfs(open.get()) != 0) return tl::unexpected(core::from_errno(errno, "store", folder));
  return {};
}

/// Paths of the service mean nothing to the user who has sent the files.
std::string with_name(std::string text, const std::string& path, const std::string& name) {
  for (auto at = text.find(path); at != std::string::npos; at = text.find(path, at + name.size()))
    text.replace(at, path.size(), name);
  return text;
}

}  // namespace

core::Result<void> Uploads::make_folder() const {
  if (::mkdir(registry_.folder().c_str(), 0700) == 0 || errno == EEXIST) return {};
  return tl::unexpected(core::from_errno(errno, "make", registry_.folder()));
}

core::Result<std::unique_ptr<Uploads::Upload>> Uploads::begin(const DatasetEntry& wanted,
                                                              std::optional<std::uint64_t> bytes) {
  if (limits_.bytes == 0) return core::fail(core::Errc::config, "this service takes no uploads (--upload-limit)");
  if (auto good = registry_.check(wanted); !good) return tl::unexpected(std::move(good.error()));
  const auto* row = data::find_dataset(wanted.kind);
  if (row->drawn) return core::fail(core::Errc::config, fmt::format("kind: {} has no files: register it", wanted.kind));
  if (wanted.kind == "hickle")  // docs/formats/data.md: the HDF5 library is not made for hostile files
    return core::fail(core::Errc::config,
                      "kind: hickle files are not taken: send them as batches (`troupe data convert --to batches`)");
  if (auto made = make_folder(); !made) return tl::unexpected(std::move(made.error()));
  const auto space = disk_space(registry_.folder());
  if (!space) return tl::unexpected(space.error());
  if (space->free < reserve_of(*space) + bytes.value_or(0))
    return core::fail(core::Errc::no_space,
                      fmt::format("the disk of the service has {} bytes left, of which {} are kept for runs",
                                  space->free, reserve_of(*space)));
  const std::scoped_lock lock(mutex_);
  if (registry_.find(wanted.name)) return core::fail(core::Errc::usage, fmt::format("name: {} is taken", wanted.name));
  if (names_.contains(wanted.name))
    return core::fail(core::Errc::usage, fmt::format("name: {} is being uploaded", wanted.name));
  if (names_.size() >= limits_.at_once)
    return core::fail(core::Errc::timeout,
                      fmt::format("{} data sets are being uploaded: try again later", names_.size()));
  auto file = file_without_name(registry_.folder());
  if (!file) return tl::unexpected(std::move(file.error()));
  names_.insert(wanted.name);
  return std::unique_ptr<Upload>(new Upload(*this, {wanted.name, wanted.kind, {}, wanted.resize}, std::move(*file)));
}

Uploads::Upload::Upload(Uploads& uploads, DatasetEntry entry, core::FileDescriptor file)
    : uploads_(uploads), entry_(std::move(entry)), file_(std::move(file)) {}

Uploads::Upload::~Upload() {
  file_.reset();
  std::error_code ignored;  // what stays is tidy()'s
  if (!root_.empty()) fs::remove_all(root_, ignored);
  const std::scoped_lock lock(uploads_.mutex_);
  uploads_.names_.erase(entry_.name);
  uploads_.folders_.erase(entry_.folder);
}

core::Result<void> Uploads::Upload::look_at_disk() const {
  const auto space = disk_space(uploads_.registry_.folder());
  if (!space) return tl::unexpected(space.error());
  if (space->free >= reserve_of(*space)) return {};
  return core::fail(core::Errc::no_space, fmt::format("the disk of the service has only {} bytes left", space->free));
}

core::Result<void> Uploads::Upload::write(std::string_view piece) {
  if (written_ >= next_look_) {
    next_look_ = written_ + kLookEvery;
    if (auto room = look_at_disk(); !room) return room;
  }
  while (!piece.empty()) {
    const auto count = ::write(file_.get(), piece.data(), piece.size());
    if (count < 0 && errno != EINTR) return tl::unexpected(core::from_errno(errno, "store", "what was sent"));
    const auto taken = static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    piece.remove_prefix(taken);
    written_ += taken;
  }
  return {};
}

core::Result<DatasetEntry> Uploads::Upload::finish(const std::stop_token& stop) {
  auto pattern = fmt::format("{}/{}.XXXXXX", uploads_.registry_.folder(), entry_.name);
  {
    const std::scoped_lock lock(uploads_.mutex_);  // tidy() must not find a folder that no upload fills
    if (::mkdtemp(pattern.data()) == nullptr)
      return tl::unexpected(core::from_errno(errno, "make a folder in", uploads_.registry_.folder()));
    entry_.folder = fs::path(pattern).filename().string();
    uploads_.folders_.insert(entry_.folder);
    root_ = pattern;
  }
  auto registered = unpack_and_open(stop);
  if (!registered)
    registered.error().message = with_name(std::move(registered.error().message), root_, entry_.name);
  else
    root_.clear();
  return registered;
}

core::Result<DatasetEntry> Uploads::Upload::unpack_and_open(const std::stop_token& stop) {
  const auto& limits = uploads_.limits_;
  const auto space = disk_space(root_);
  if (!space) return tl::unexpected(space.error());
  const UnpackLimits most{.bytes = kUnpacked * limits.bytes,
                          .reserve = reserve_of(*space),
                          .deadline = std::chrono::steady_clock::now() + limits.unpacking};
  if (auto unpacked = unpack(file_.get(), root_, most, stop); !unpacked) return tl::unexpected(unpacked.error());
  file_.reset();  // its bytes are free again
  auto known = entry_;
  known.folder += inner_folder(root_);
  known.path = uploads_.registry_.folder() + "/" + known.folder;
  if (const auto facts = inspect(known); !facts) return tl::unexpected(facts.error());
  return sync_disk(root_).and_then([&] { return uploads_.registry_.add(known); }).map([&] { return known; });
}

bool Uploads::is_used(const std::string& folder) const {
  {
    const std::scoped_lock lock(mutex_);
    if (folders_.contains(folder)) return true;
  }
  // After the look above: an upload is registered before its folder leaves the set.
  return std::ranges::any_of(registry_.list(), [&](const DatasetEntry& entry) {
    return entry.folder.substr(0, entry.folder.find('/')) == folder;
  });
}

void Uploads::tidy(const std::stop_token& stop) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(registry_.folder(), error), end; !error && at != end; at.increment(error))
    found.push_back(at->path());
  for (const auto& path : found)
    if (!stop.stop_requested() && !is_used(path.filename().string())) fs::remove_all(path, error);
}

}  // namespace troupe::service
