#include "nn/checkpoint/metered_files.hpp"

#include <algorithm>

namespace troupe::nn {

core::Result<int> MeteredFiles::create(const std::string& path) { return ended(files_.create(path)); }

core::Result<void> MeteredFiles::write(int file, Bytes bytes, const std::string& path) {
  core::Result<void> written;
  do {
    const auto piece = bytes.first(std::min(bytes.size(), kPieceBytes));
    bytes = bytes.subspan(piece.size());
    written = ended(files_.write(file, piece, path));
  } while (written && !bytes.empty());
  return written;
}

core::Result<void> MeteredFiles::sync(int file, const std::string& path) { return ended(files_.sync(file, path)); }

core::Result<void> MeteredFiles::close(int file, const std::string& path) { return ended(files_.close(file, path)); }

core::Result<void> MeteredFiles::copy(const std::string& from, const std::string& to,
                                      const std::function<void()>& moved) {
  return ended(files_.copy(from, to, [this, &moved] {
    ++calls_;
    moved();
  }));
}

core::Result<void> MeteredFiles::rename(const std::string& from, const std::string& to) {
  return ended(files_.rename(from, to));
}

core::Result<void> MeteredFiles::sync_directory(const std::string& path) { return ended(files_.sync_directory(path)); }

core::Result<void> MeteredFiles::remove(const std::string& path) { return ended(files_.remove(path)); }

core::Result<void> MeteredFiles::create_directories(const std::string& path) {
  return ended(files_.create_directories(path));
}

core::Result<std::vector<std::string>> MeteredFiles::list(const std::string& path) { return ended(files_.list(path)); }

core::Result<std::vector<std::byte>> MeteredFiles::read(const std::string& path) { return ended(files_.read(path)); }

}  // namespace troupe::nn
