#include "service/live/followed_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace troupe::service {

core::Result<bool> FollowedFile::read(const OnLine& on_line) {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) return tl::unexpected(core::from_errno(errno, "read", "metrics.jsonl"));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  position_ = std::min(position_, size);
  const auto held = part_.size();
  if (size <= position_ + held) {
    part_.clear();
    return false;
  }
  part_.resize(held + kPieceBytes);
  const auto count = ::pread(file_.get(), part_.data() + held, kPieceBytes, static_cast<off_t>(position_ + held));
  part_.resize(held + static_cast<std::size_t>(count > 0 ? count : 0));
  if (count < 0) return tl::unexpected(core::from_errno(errno, "read", "metrics.jsonl"));
  std::size_t begin = 0;
  for (auto end = part_.find('\n', held); end != std::string::npos; end = part_.find('\n', begin)) {
    const auto line = std::string_view(part_).substr(begin, end - begin);
    begin = end + 1;
    on_line(line, position_ + begin);
  }
  part_.erase(0, begin);
  position_ += begin;
  if (part_.size() > kLongestLine) {
    position_ += part_.size();
    part_.clear();
  }
  if (count == static_cast<ssize_t>(kPieceBytes)) return true;
  part_.clear();  // a resumed run may remove a line that was cut off, and write another one there
  return false;
}

}  // namespace troupe::service
