#include "data/files/open_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

namespace troupe::data {

core::Result<OpenFile> OpenFile::open(const std::filesystem::path& path) {
  const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a named pipe would wait for its writer
  if (descriptor < 0) {
    const int why = errno;
    auto error = core::from_errno(why, "open", path.string());
    if (why == ENOENT || why == ENOTDIR || why == ELOOP) error.code = core::Errc::data;
    return tl::unexpected(std::move(error));
  }
  OpenFile file(path.string(), descriptor, 0);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return tl::unexpected(core::from_errno(errno, "read", path.string()));
  if (!S_ISREG(status.st_mode))
    return core::fail(core::Errc::data, fmt::format("{}: not a regular file", path.string()));
  file.size_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

core::Result<void> OpenFile::read(std::uint64_t offset, std::span<std::uint8_t> bytes) const {
  while (!bytes.empty()) {
    const auto got = ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl::unexpected(core::from_errno(errno, "read", path_));
    if (got == 0)
      return core::fail(core::Errc::data,
                        fmt::format("{}: truncated: {} bytes are missing at byte {}", path_, bytes.size(), offset));
    offset += static_cast<std::uint64_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

core::Error of_record(const core::Error& error, const std::string& where) {
  if (error.code != core::Errc::data) return error;
  return {core::Errc::data, fmt::format("{}: truncated: the file has become shorter", where)};
}

}  // namespace troupe::data
