#include "experiment/directory/directory_lock.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

namespace troupe::experiment {
namespace {

/// Far behind the text, so that the text stays readable where locks are mandatory (SMB). NFS before version 4 has 31 bits for it.
constexpr off_t kByte = off_t{1} << 30;

struct flock the_byte(short kind) {
  struct flock what {};
  what.l_type = kind;
  what.l_whence = SEEK_SET;
  what.l_start = kByte;
  what.l_len = 1;
  return what;
}

bool has_no_locks(int error) {
  return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP || error == ENOTSUP || error == EINVAL;
}

std::string path_of(const std::string& directory) { return fmt::format("{}/{}", directory, DirectoryLock::kFile); }

std::string own_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"?"};
  return fmt::format("process {} on host {}", ::getpid(), host.data());
}

/// The file's first line. Another process wrote it, so the result is short and printable.
std::string read_name(int file) {
  std::array<char, 256> text{};
  const auto size = ::pread(file, text.data(), text.size(), 0);
  std::string name(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  name = name.substr(0, name.find('\n'));
  std::ranges::replace_if(
      name, [](unsigned char c) { return c < ' ' || c >= 0x7f; }, '?');
  return name.empty() ? "another process" : name;
}

/// The holder of the lock may write its name. A failure is ignored: only the lock matters.
void write_name(int file) {
  const auto line = own_name() + "\n";
  const auto written = ::pwrite(file, line.data(), line.size(), 0);
  if (::ftruncate(file, written > 0 ? written : 0) != 0) return;
}

}  // namespace

int DirectoryLock::system_call(int file, int command, struct flock* what) { return ::fcntl(file, command, what); }

core::Result<DirectoryLock> DirectoryLock::take(const std::string& directory, Call call) {
  const auto path = path_of(directory);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return tl::unexpected(core::from_errno(errno, "open", path));
  DirectoryLock lock(file);
  auto what = the_byte(F_WRLCK);
  if (call(file, F_OFD_SETLK, &what) == 0) {
    write_name(file);
    return lock;
  }
  const int error = errno;
  if (error == EAGAIN || error == EACCES)
    return core::fail(
        core::Errc::timeout,
        fmt::format("{}: {} is at work in this directory: try again when it has ended", directory, read_name(file)));
  if (!has_no_locks(error)) return tl::unexpected(core::from_errno(error, "lock", path));
  lock.missing_ = fmt::format("{}: {}: nothing keeps a second process from writing into this directory: start none",
                              directory, core::from_errno(error, "lock", std::string(kFile)).message);
  return lock;
}

core::Result<std::optional<std::string>> DirectoryLock::holder(const std::string& directory, Call call) {
  const auto path = path_of(directory);
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // a pipe would wait for its writer
  if (file < 0 && errno == ENOENT) return std::nullopt;
  if (file < 0) return tl::unexpected(core::from_errno(errno, "open", path));
  auto what = the_byte(F_WRLCK);
  const int error = call(file, F_OFD_GETLK, &what) == 0 ? 0 : errno;
  auto name = read_name(file);
  ::close(file);
  if (error != 0 && !has_no_locks(error)) return tl::unexpected(core::from_errno(error, "look at the lock of", path));
  if (error != 0 || what.l_type == F_UNLCK) return std::nullopt;
  return name;
}

DirectoryLock::DirectoryLock(DirectoryLock&& other) noexcept
    : file_(std::exchange(other.file_, -1)), missing_(std::move(other.missing_)) {}

DirectoryLock& DirectoryLock::operator=(DirectoryLock&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(missing_, other.missing_);
  return *this;
}

/// Unlocks explicitly: a forked child that has not started its program yet shares the open file.
DirectoryLock::~DirectoryLock() {
  if (file_ < 0) return;
  auto what = the_byte(F_UNLCK);
  system_call(file_, F_OFD_SETLK, &what);
  ::close(file_);
}

}  // namespace troupe::experiment
