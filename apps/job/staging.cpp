#include "apps/job/staging.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <random>
#include <utility>

#include <fmt/format.h>

namespace troupe::apps {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPiece = 4 << 20;  // bytes that a rank reads at once

/// A file that several processes write, each at its own places.
class SharedCopy {
 public:
  explicit SharedCopy(const fs::path& path)
      : path_(path.string()), descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), error_(errno) {}
  SharedCopy(const SharedCopy&) = delete;
  SharedCopy& operator=(const SharedCopy&) = delete;
  ~SharedCopy() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  core::Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes) const {
    if (descriptor_ < 0) return tl::unexpected(core::from_errno(error_, "create", path_));
    while (!bytes.empty()) {
      const auto put = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return tl::unexpected(core::from_errno(errno, "write", path_));
      offset += static_cast<std::uint64_t>(put);
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
    return {};
  }

 private:
  std::string path_;
  int descriptor_;
  int error_;
};

/// This rank's bytes: those of its place among the ranks of its host. Every host gets the whole file.
transport::Job::FilePart part_of(const std::string& file, const HostPart& part) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error) return {file, 0, 0};  // the collective read says that it cannot be opened
  return {file, size / part.ranks * part.rank,
          part.rank + 1 == part.ranks ? size : size / part.ranks * (part.rank + 1)};
}

}  // namespace

std::string stage_directory(const std::string& parent) {
  std::random_device entropy;
  const auto secret = std::uint64_t{entropy()} << 32 | entropy();
  return (fs::path(parent) / fmt::format("troupe-{:016x}", secret)).string();
}

core::Result<StagedFiles> StagedFiles::read(transport::Job& job, const StageOrder& order, const HostPart& part,
                                            std::chrono::seconds patience) {
  std::error_code error;
  fs::create_directories(order.directory, error);
  StagedFiles copies(order.directory, part.rank == 0);
  core::Result<void> result;
  if (error) result = tl::unexpected(core::from_errno(error.value(), "make", order.directory));
  if (result) fs::permissions(order.directory, fs::perms::owner_all, error);
  for (const auto& file : order.files) {
    const SharedCopy copy(fs::path(order.directory) / fs::path(file).filename());
    const auto until = std::chrono::steady_clock::now() + patience;
    auto read = job.read_together(
        part_of(file, part), kPiece, [&](std::uint64_t offset, auto bytes) { return copy.write(offset, bytes); },
        [until] { return std::chrono::steady_clock::now() > until; });
    if (!read && result) result = std::move(read);
    // Without the file at one rank no rank has read it: the order of collective calls stays the same at all of them.
  }
  if (!result) return tl::unexpected(std::move(result.error()));
  return copies;
}

StagedFiles::StagedFiles(StagedFiles&& other) noexcept
    : directory_(std::move(other.directory_)), removes_(std::exchange(other.removes_, false)) {}

StagedFiles::~StagedFiles() {
  if (!removes_) return;
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

}  // namespace troupe::apps
