#include "apps/fetch/part_file.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::fetch {
namespace {

namespace fs = std::filesystem;
using core::Errc;
using core::fail;
using core::Result;

constexpr std::size_t kAtOnce = std::size_t{1} << 20;  // bytes

tl::unexpected<core::Error> failed(std::string_view doing, const fs::path& path) {
  return tl::unexpected(core::from_errno(errno, doing, path.string()));
}

}  // namespace

Result<std::string> sha256_of(const fs::path& path, const std::stop_token& stop) {
  const core::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return failed("open", path);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!digest || EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) != 1)
    return fail(Errc::internal, "SHA-256 cannot be computed");
  std::vector<char> bytes(kAtOnce);
  for (;;) {
    if (stop.stop_requested()) return fail(Errc::interrupted, "interrupted");
    const auto got = ::read(file.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read", path);
    if (got == 0) break;
    EVP_DigestUpdate(digest.get(), bytes.data(), static_cast<std::size_t>(got));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned size = 0;
  EVP_DigestFinal_ex(digest.get(), sum.data(), &size);
  return fmt::format("{:02x}", fmt::join(sum.begin(), sum.begin() + size, ""));
}

Result<PartFile> PartFile::open(const fs::path& file) {
  const fs::path path = file.string() + ".part";
  core::FileDescriptor descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!descriptor) return failed("open", path);
  if (::flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return fail(Errc::config, fmt::format("{}: another process fetches it: wait for its end", path.string()));
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) return failed("open", path);
  return PartFile(file, std::move(descriptor), static_cast<std::uint64_t>(status.st_size));
}

Result<void> PartFile::append(std::span<const char> bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(descriptor_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write", path());
    size_ += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> PartFile::clear() {
  if (size_ == 0) return {};
  if (::ftruncate(descriptor_.get(), 0) != 0) return failed("write", path());
  size_ = 0;
  return {};
}

Result<void> PartFile::commit() {
  if (::fsync(descriptor_.get()) != 0) return failed("write", path());
  if (::rename(path().c_str(), file_.c_str()) != 0) return failed("rename", path());
  const auto parent = file_.parent_path();
  const core::FileDescriptor folder(::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0) return failed("write", parent);
  return {};
}

}  // namespace troupe::fetch
