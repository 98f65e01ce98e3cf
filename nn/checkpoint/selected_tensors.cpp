// read_selected() of safetensors.hpp.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "nn/checkpoint/safetensors.hpp"
#include "nn/checkpoint/safetensors_header.hpp"
#include "nn/hash.hpp"

namespace troupe::nn {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;  // bytes

/// A file that is read once, from its beginning to its end.
class InputFile {
 public:
  static core::Result<InputFile> open(const std::string& path) {
    // Non-blocking: opening a pipe without a writer would wait.
    InputFile file(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.descriptor_ < 0) return tl::unexpected(core::from_errno(errno, "open", path));
    struct stat status {};
    if (::fstat(file.descriptor_, &status) != 0) return tl::unexpected(core::from_errno(errno, "read", path));
    if (!S_ISREG(status.st_mode))
      return core::fail(core::Errc::io, fmt::format("cannot read {}: not a regular file", path));
    file.size_ = static_cast<std::uint64_t>(status.st_size);
    return file;
  }
  InputFile(InputFile&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  core::Result<void> read(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t got = ::read(descriptor_, bytes.data(), std::min(bytes.size(), std::size_t{1} << 30));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return tl::unexpected(core::from_errno(errno, "read", path_));
      if (got == 0) return core::fail(core::Errc::corrupt, path_ + ": it became shorter while it was read");
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return {};
  }
  core::Result<void> skip(std::uint64_t bytes) {
    if (::lseek(descriptor_, static_cast<off_t>(bytes), SEEK_CUR) < 0)
      return tl::unexpected(core::from_errno(errno, "read", path_));
    return {};
  }

 private:
  InputFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  std::string path_;
  int descriptor_;
  std::uint64_t size_ = 0;
};

/// The checksum of the next `size` bytes, which are not kept.
core::Result<std::string> hash_next(InputFile& input, std::uint64_t size) {
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min<std::uint64_t>(size, kPiece)));
  Hash128 hash;
  for (std::uint64_t done = 0; done < size; done += piece.size()) {
    piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), size - done)));
    if (auto read = input.read(piece); !read) return tl::unexpected(std::move(read.error()));
    hash.add(piece);
  }
  return hash.hex();
}

}  // namespace

core::Result<SafetensorsFile> read_selected(const std::string& path, const TensorSelection& selected) {
  const auto corrupt = [&](const std::string& why) {
    return core::fail(core::Errc::corrupt, fmt::format("{}: {}", path, why));
  };
  auto input = InputFile::open(path);
  if (!input) return tl::unexpected(std::move(input.error()));
  std::string head(static_cast<std::size_t>(std::min<std::uint64_t>(kLengthBytes, input->size())), '\0');
  const auto bytes_from = [](std::string& text, std::size_t first) {
    return std::as_writable_bytes(std::span(text)).subspan(first);
  };
  if (auto read = input->read(bytes_from(head, 0)); !read) return tl::unexpected(std::move(read.error()));
  const auto length = header_length(bytes_from(head, 0), input->size());
  if (!length) return corrupt(length.error());
  head.resize(kLengthBytes + *length);
  if (auto read = input->read(bytes_from(head, kLengthBytes)); !read) return tl::unexpected(std::move(read.error()));
  auto contents = parse_contents(head, input->size() - head.size(), Checksums::if_present);
  if (!contents) return corrupt(contents.error());

  SafetensorsFile file;
  std::size_t kept = 0;
  for (const auto& tensor : contents->tensors)
    if (selected(tensor)) kept += *tensor_bytes(tensor.dtype, tensor.shape);
  auto bytes = std::make_shared<std::vector<std::byte>>(kept);
  auto rest = std::span(*bytes);
  file.bytes_ = std::move(bytes);
  for (auto& tensor : contents->tensors) {
    const auto size = *tensor_bytes(tensor.dtype, tensor.shape);
    std::string checksum;
    if (selected(tensor)) {
      const auto place = rest.first(size);
      rest = rest.subspan(size);
      if (auto read = input->read(place); !read) return tl::unexpected(std::move(read.error()));
      if (contents->has_checksums) checksum = hash128_hex(place);
      tensor.data = place;
    } else if (contents->has_checksums) {
      auto found = hash_next(*input, size);
      if (!found) return tl::unexpected(std::move(found.error()));
      checksum = std::move(*found);
    } else if (auto skipped = input->skip(size); !skipped) {
      return tl::unexpected(std::move(skipped.error()));
    }
    if (!contents->has_checksums) continue;
    if (const auto right = take_checksum(contents->metadata, tensor.name, checksum); !right)
      return corrupt(right.error());
  }
  file.tensors_ = std::move(contents->tensors);
  file.metadata_ = std::move(contents->metadata);
  file.has_checksums_ = contents->has_checksums;
  file.origin_ = path;
  return file;
}

}  // namespace troupe::nn
