#include "service/datasets/unpack.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "core/file_descriptor.hpp"
#include "service/datasets/utf8_names.hpp"

namespace troupe::service {
namespace {

constexpr std::size_t kPieceOfFile = std::size_t{256} << 10;
constexpr std::uint64_t kBetweenLooks = std::uint64_t{64} << 20;  // bytes between two looks at the disk
constexpr std::size_t kLongestPart = 255, kLongestPath = 1024, kDeepest = 16;

core::Result<void> bad(std::string text) { return core::fail(core::Errc::data, "the archive " + std::move(text)); }

/// The parts of an entry's name; none: it is left out, or is the folder itself.
core::Result<std::vector<std::string>> parts_of(std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    std::string shown(name.substr(0, 100));
    std::ranges::replace_if(
        shown, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
    return core::fail(core::Errc::data, fmt::format("the archive has \"{}\": {}", shown, why));
  };
  if (name.empty()) return refuse("an entry without a name");
  if (name.starts_with('/')) return refuse("an absolute path");
  if (name.size() > kLongestPath) return refuse("a path that is too long");
  const auto forbidden = [](unsigned char c) { return c < ' ' || c == 0x7f || c == '\\'; };
  if (std::ranges::any_of(name, forbidden)) return refuse("a control character or backslash in a name");
  std::vector<std::string> parts;
  bool hidden = false;
  while (!name.empty()) {
    const auto part = name.substr(0, name.find('/'));
    name.remove_prefix(std::min(part.size() + 1, name.size()));
    if (part == "..") return refuse("a path that leaves its folder");
    if (part.empty() || part == ".") continue;
    if (part.size() > kLongestPart) return refuse("a name that is too long");
    hidden = hidden || part.starts_with('.') || part == "__MACOSX";
    parts.emplace_back(part);
  }
  if (parts.size() > kDeepest) return refuse("folders that are too deep");
  if (hidden) parts.clear();
  return parts;
}

class Unpacker {
 public:
  Unpacker(std::string into, const UnpackLimits& limits, const std::stop_token& stop)
      : into_(std::move(into)), limits_(limits), stop_(stop), reader_(archive_read_new(), archive_read_free) {}

  core::Result<void> run(int file) {
    if (auto opened = open(file); !opened) return opened;
    archive_entry* entry = nullptr;
    for (std::uint64_t count = 0;; ++count) {
      const int status = archive_read_next_header(reader_.get(), &entry);
      if (status == ARCHIVE_EOF) return count > 0 ? core::Result<void>() : bad("has no files");
      if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return damaged();
      if (count >= limits_.entries) return bad(fmt::format("has more than {} entries", limits_.entries));
      if (auto taken = take(entry); !taken) return taken;
    }
  }

  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  core::Result<void> open(int file) {
    if (!reader_) return core::fail(core::Errc::out_of_memory, "no memory to read an archive");
    auto* reader = reader_.get();
    // Other filters and formats are not read: some start programs, and some take as much memory as the file wants.
    const bool can_zstd = archive_read_support_filter_gzip(reader) == ARCHIVE_OK &&
                          archive_read_support_filter_zstd(reader) == ARCHIVE_OK;
    if (!can_zstd) return core::fail(core::Errc::internal, "libarchive was built without gzip or zstd");
    archive_read_support_format_tar(reader);
    archive_read_support_format_zip(reader);
    if (::lseek(file, 0, SEEK_SET) < 0) return tl::unexpected(core::from_errno(errno, "read", "what was sent"));
    if (archive_read_open_fd(reader, file, kPieceOfFile) != ARCHIVE_OK) return damaged();
    constexpr int kOneFilter = 2;  // and the file itself
    if (archive_filter_count(reader) > kOneFilter) return bad("is compressed more than once");
    return {};
  }

  core::Result<void> damaged() {
    const auto* text = archive_error_string(reader_.get());
    return core::fail(core::Errc::data,
                      fmt::format("this is no zip and no tar (plain, .gz or .zst), or a damaged one: {}",
                                  text != nullptr ? text : "it cannot be read"));
  }

  core::Result<void> take(archive_entry* entry) {
    const auto* name = archive_entry_pathname_utf8(entry);
    if (name == nullptr) name = archive_entry_pathname(entry);
    auto parts = parts_of(name != nullptr ? name : "");
    if (!parts) return tl::unexpected(std::move(parts.error()));
    const std::string format = archive_format_name(reader_.get());
    if (format.starts_with("ZIP") && format.find("(uncompressed)") == std::string::npos &&
        format.find("(deflation)") == std::string::npos)
      return bad(fmt::format("is packed in a way that is not read, {}: pack it by deflate", format));
    if (archive_entry_is_encrypted(entry) != 0) return bad("is encrypted");
    const auto type = archive_entry_filetype(entry);
    const bool is_folder = type == AE_IFDIR;
    if ((!is_folder && type != AE_IFREG) || archive_entry_hardlink(entry) != nullptr ||
        archive_entry_symlink(entry) != nullptr)
      return bad(fmt::format("has a link or a device, {}: only files and folders are taken", name));
    if (parts->empty()) return {};
    const auto file = is_folder ? std::string() : std::move(parts->back());
    if (!is_folder) parts->pop_back();
    auto folder = folder_of(*parts);
    if (!folder) return tl::unexpected(std::move(folder.error()));
    return is_folder ? core::Result<void>() : write(*folder + "/" + file);
  }

  /// All folders on the way, made where they are missing. Nothing here is a link.
  core::Result<std::string> folder_of(const std::vector<std::string>& parts) {
    auto path = into_;
    for (const auto& part : parts) {
      path += "/" + part;
      if (made_.contains(path)) continue;
      struct stat status {};
      if (::mkdir(path.c_str(), 0700) != 0 &&
          (errno != EEXIST || ::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)))
        return tl::unexpected(failed(errno, "make", path));
      made_.insert(path);
    }
    return path;
  }

  core::Result<void> write(const std::string& path) {
    const core::FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return tl::unexpected(failed(errno, "make", path));
    for (;;) {
      if (auto may = may_go_on(); !may) return may;
      // Holes of sparse files come as zeros, and so count.
      const auto got = archive_read_data(reader_.get(), piece_.data(), piece_.size());
      if (got == 0) return {};
      if (got < 0) return damaged();
      written_ += static_cast<std::uint64_t>(got);
      if (written_ > limits_.bytes) return bad(fmt::format("has more than {} bytes of files", limits_.bytes));
      for (ssize_t done = 0; done < got;) {
        const auto count = ::write(file.get(), piece_.data() + done, static_cast<std::size_t>(got - done));
        if (count < 0 && errno != EINTR) return tl::unexpected(failed(errno, "write", path));
        done += std::max<ssize_t>(count, 0);
      }
    }
  }

  core::Result<void> may_go_on() {
    if (stop_.stop_requested()) return core::fail(core::Errc::interrupted, "the service ends");
    if (std::chrono::steady_clock::now() > limits_.deadline)
      return core::fail(core::Errc::timeout, "unpacking took too long");
    if (written_ < next_look_) return {};
    next_look_ = written_ + kBetweenLooks;
    const auto space = disk_space(into_);
    if (!space) return tl::unexpected(space.error());
    if (space->free < limits_.reserve)
      return core::fail(core::Errc::no_space,
                        fmt::format("the disk of the service has only {} bytes left", space->free));
    return {};
  }

  /// What the archive itself is to blame for is Errc::data.
  core::Error failed(int number, std::string_view doing, const std::string& path) const {
    const auto inner = path.substr(into_.size() + 1);
    if (number == EEXIST || number == ENOTDIR || number == EISDIR)
      return {core::Errc::data, fmt::format("the archive has {} twice, or also as a folder", inner)};
    return core::from_errno(number, doing, inner);
  }

  std::string into_;
  const UnpackLimits& limits_;
  const std::stop_token& stop_;
  std::unique_ptr<archive, int (*)(archive*)> reader_;
  std::unordered_set<std::string> made_;
  std::vector<char> piece_ = std::vector<char>(kPieceOfFile);
  std::uint64_t written_ = 0, next_look_ = 0;
};

}  // namespace

core::Result<std::uint64_t> unpack(int archive, const std::string& into, const UnpackLimits& limits,
                                   const std::stop_token& stop) {
  const Utf8Names utf8;
  Unpacker unpacker(into, limits, stop);
  return unpacker.run(archive).map([&] { return unpacker.written(); });
}

core::Result<DiskSpace> disk_space(const std::string& path) {
  struct statvfs disk {};
  if (::statvfs(path.c_str(), &disk) != 0) return tl::unexpected(core::from_errno(errno, "look at", path));
  return DiskSpace{std::uint64_t{disk.f_bavail} * disk.f_frsize, std::uint64_t{disk.f_blocks} * disk.f_frsize};
}

}  // namespace troupe::service
