#include "transport/security/private_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "core/file_descriptor.hpp"

namespace troupe::security {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 20;

tl::unexpected<core::Error> failed(std::string_view doing, const std::string& path, int error = errno) {
  return tl::unexpected(core::from_errno(error, doing, path));
}

core::Result<void> write_synced(int file, const std::string& path, std::string_view text, mode_t mode) {
  if (::fchmod(file, mode) != 0) return failed("set the permissions of", path);
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write", path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(file) != 0) return failed("sync", path);
  return {};
}

core::Result<void> keep_owner(int file, const std::string& path) {
  struct stat old {};
  if (::geteuid() != 0 || ::lstat(path.c_str(), &old) != 0) return {};
  if (::fchown(file, old.st_uid, old.st_gid) != 0) return failed("set the owner of", path);
  return {};
}

core::Result<void> sync_directory(const std::string& path) {
  const core::FileDescriptor directory{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (directory.get() < 0) return failed("open directory", path);
  if (::fsync(directory.get()) != 0) return failed("sync directory", path);
  return {};
}

}  // namespace

core::Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode, Owner owner) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  std::string temporary = path + ".XXXXXX";
  const core::FileDescriptor file{::mkostemp(temporary.data(), O_CLOEXEC)};  // created with access for the owner only
  if (file.get() < 0) return failed("create a file beside", path);
  auto result = write_synced(file.get(), path, text, mode);
  if (result && owner == Owner::kept) result = keep_owner(file.get(), path);
  if (result && ::rename(temporary.c_str(), path.c_str()) != 0) result = failed("rename a file to", path);
  if (!result) {
    ::unlink(temporary.c_str());  // best effort; the first failure is reported
    return result;
  }
  return sync_directory(parent.empty() ? "." : parent);
}

core::Result<std::string> read_file(const std::string& path) {
  const core::FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};  // a FIFO must not block
  if (file.get() < 0) return failed("open", path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return failed("read", path);
  if (!S_ISREG(status.st_mode))
    return core::fail(core::Errc::io, fmt::format("cannot read {}: not a regular file", path));
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read", path);
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > kLargest)
      return core::fail(core::Errc::io, fmt::format("cannot read {}: too long for a key or a certificate", path));
  }
}

}  // namespace troupe::security
