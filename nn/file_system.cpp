#include "nn/file_system.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fmt/format.h>

namespace troupe::nn {
namespace {

namespace fs = std::filesystem;

tl::unexpected<core::Error> failed(std::string_view doing, const std::string& path, int error = errno) {
  return tl::unexpected(core::from_errno(error, doing, path));
}

/// Linux gives and takes at most this much per call.
constexpr std::size_t kChunk = std::size_t{1} << 30;

class SystemFiles final : public FileSystem {
 public:
  core::Result<int> create(const std::string& path) override {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return failed("create", path);
    return file;
  }

  core::Result<void> write(int file, Bytes bytes, const std::string& path) override {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file, bytes.data(), std::min(bytes.size(), kChunk));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return failed("write", path);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
  }

  core::Result<void> sync(int file, const std::string& path) override {
    if (::fsync(file) != 0) return failed("sync", path);  // EINTR too: what was written by then is unknown
    return {};
  }

  core::Result<void> close(int file, const std::string& path) override {
    if (::close(file) != 0 && errno != EINTR) return failed("close", path);
    return {};
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
      if (got == 0) break;  // it became shorter meanwhile
      done += static_cast<std::size_t>(got);
    }
    bytes.resize(done);
    return bytes;
  }
};

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

core::Result<void> replace_file(FileSystem& files, const std::string& directory, const std::string& name,
                                std::span<const Bytes> parts) {
  const std::string path = fmt::format("{}/{}", directory, name);
  const std::string temporary = path + std::string(kTemporarySuffix);
  auto result = files.remove(temporary);  // of a writer that was killed
  if (!result) return result;
  result = write_synced(files, temporary, parts);
  if (result) result = files.rename(temporary, path);
  if (!result) {
    // Best effort: the failure that counts is the first, and the next attempt removes it again.
    (void)files.remove(temporary);
    return result;
  }
  return files.sync_directory(directory);
}

}  // namespace troupe::nn
