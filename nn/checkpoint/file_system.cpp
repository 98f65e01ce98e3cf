#include "nn/checkpoint/file_system.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <random>

#include <fmt/format.h>

namespace troupe::nn {
namespace {

namespace fs = std::filesystem;

tl::unexpected<core::Error> failed(std::string_view doing, const std::string& path, int error = errno) {
  return tl::unexpected(core::from_errno(error, doing, path));
}

/// Linux reads and writes at most this much per call.
constexpr std::size_t kChunk = std::size_t{1} << 30;
/// Writes of at least this size are pushed to the disk as they proceed.
constexpr std::size_t kLongWrite = std::size_t{1} << 20;

class SystemFiles final : public FileSystem {
 public:
  core::Result<int> create(const std::string& path) override {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return failed("create", path);
    return file;
  }

  core::Result<void> write(int file, Bytes bytes, const std::string& path) override {
    const bool is_long = bytes.size() >= kLongWrite;
    while (!bytes.empty()) {
      const ssize_t written = ::write(file, bytes.data(), std::min(bytes.size(), kChunk));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return failed("write", path);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return is_long ? push(file, path) : core::Result<void>();
  }

  core::Result<void> sync(int file, const std::string& path) override {
    if (::fsync(file) != 0) return failed("sync", path);  // EINTR too: it is unknown what was written by then
    return {};
  }

  core::Result<void> close(int file, const std::string& path) override {
    if (::close(file) != 0 && errno != EINTR) return failed("close", path);
    return {};
  }

  core::Result<void> copy(const std::string& from, const std::string& to, const std::function<void()>& moved) override {
    const int source = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
    if (source < 0) return failed("open", from);
    const auto target = create(to);
    auto result = target ? copy_bytes(source, from, *target, to, moved) : tl::unexpected(target.error());
    ::close(source);
    if (!target) return result;
    if (result) result = sync(*target, to);
    const auto closed = close(*target, to);
    return result ? closed : result;
  }

  core::Result<void> rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return failed("rename a file to", to);
    return {};
  }

  core::Result<void> sync_directory(const std::string& path) override {
    const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return failed("open directory", path);
    const int result = ::fsync(directory);
    const int error = errno;
    ::close(directory);
    if (result != 0) return failed("sync directory", path, error);
    return {};
  }

  core::Result<void> remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed("remove", path);
    return {};
  }

  core::Result<void> create_directories(const std::string& path) override {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) return failed("create directory", path, error.value());
    return {};
  }

  core::Result<std::vector<std::string>> list(const std::string& path) override {
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
      names.push_back(it->path().filename());
    if (error) return failed("list directory", path, error.value());
    std::ranges::sort(names);
    return names;
  }

  core::Result<std::vector<std::byte>> read(const std::string& path) override {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return failed("open", path);
    auto bytes = read_all(file, path);
    ::close(file);
    return bytes;
  }

 private:
  /// Waits for the data pushed before, and starts writing the data since then. So the final sync of a long file, one call without
  /// visible progress, has little left to do. A disk error is reported here, and not again by later syncs of this file.
  static core::Result<void> push(int file, const std::string& path) {
    if (::sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE) == 0) return {};
    if (errno == EIO || errno == ENOSPC || errno == EDQUOT) return failed("write", path);
    return {};  // the file system does not support it
  }

  core::Result<void> copy_bytes(int source, const std::string& from, int target, const std::string& to,
                                const std::function<void()>& moved) {
    std::vector<std::byte> piece(kLongWrite);
    for (;;) {
      const ssize_t got = ::read(source, piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failed("read", from);
      if (got == 0) return {};
      if (auto written = write(target, Bytes(piece).first(static_cast<std::size_t>(got)), to); !written) return written;
      moved();
    }
  }

  static core::Result<std::vector<std::byte>> read_all(int file, const std::string& path) {
    struct stat status {};
    if (::fstat(file, &status) != 0) return failed("read", path);
    if (!S_ISREG(status.st_mode))
      return core::fail(core::Errc::io, fmt::format("cannot read {}: not a regular file", path));
    std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got = ::read(file, bytes.data() + done, std::min(bytes.size() - done, kChunk));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failed("read", path);
      if (got == 0) break;  // the file became shorter meanwhile
      done += static_cast<std::size_t>(got);
    }
    bytes.resize(done);
    return bytes;
  }
};

/// The name of this process among all writers of a directory: "host1-4711-5f3a9c01".
std::string writer_name() {
  constexpr std::size_t kMostOfHost = 32;  // a file name has at most 255 bytes, with the file's own name first
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = 0;
  std::string name = std::string(host.data()).substr(0, kMostOfHost);
  std::ranges::replace_if(
      name, [](unsigned char c) { return c <= ' ' || c == '/' || c >= 0x7f; }, '_');
  return fmt::format("{}-{}-{:08x}", name, ::getpid(), std::random_device{}());
}

std::string temporary_of(const std::string& path) {
  static const std::string writer = writer_name();
  static std::atomic<std::uint64_t> count{0};
  return fmt::format("{}.{}-{}{}", path, writer, count.fetch_add(1), kTemporarySuffix);
}

core::Result<void> write_synced(FileSystem& files, const std::string& path, std::span<const Bytes> parts) {
  const auto file = files.create(path);
  if (!file) return tl::unexpected(file.error());
  core::Result<void> result;
  for (const Bytes part : parts) {
    result = files.write(*file, part, path);
    if (!result) break;
  }
  if (result) result = files.sync(*file, path);
  const auto closed = files.close(*file, path);
  return result ? closed : result;
}

}  // namespace

FileSystem& system_files() noexcept {
  static SystemFiles files;
  return files;
}

namespace {

/// `write` creates a complete, synced temporary, which then replaces the file.
template <class Write>
core::Result<void> replace(FileSystem& files, const std::string& directory, const std::string& name, Write write) {
  const std::string path = fmt::format("{}/{}", directory, name);
  const std::string temporary = temporary_of(path);
  core::Result<void> result = write(temporary);
  if (result) result = files.rename(temporary, path);
  if (!result) {
    // Best effort: the first error counts, and the next writer of the directory removes the temporary.
    (void)files.remove(temporary);
    return result;
  }
  return files.sync_directory(directory);
}

}  // namespace

core::Result<void> replace_file(FileSystem& files, const std::string& directory, const std::string& name,
                                std::span<const Bytes> parts) {
  return replace(files, directory, name,
                 [&](const std::string& temporary) { return write_synced(files, temporary, parts); });
}

core::Result<void> replace_by_copy(FileSystem& files, const std::string& from, const std::string& directory,
                                   const std::string& name) {
  return replace(files, directory, name,
                 [&](const std::string& temporary) { return files.copy(from, temporary, [] {}); });
}

core::Result<void> remove_temporaries(FileSystem& files, const std::string& directory) {
  const auto names = files.list(directory);
  if (!names) return tl::unexpected(names.error());
  for (const auto& name : *names)
    if (name.ends_with(kTemporarySuffix)) (void)files.remove(directory + "/" + name);
  return {};
}

}  // namespace troupe::nn
