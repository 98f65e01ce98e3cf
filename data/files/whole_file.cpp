#include "data/files/whole_file.hpp"

#include <cerrno>
#include <fstream>
#include <system_error>

namespace troupe::data {

core::Result<WholeFile> WholeFile::begin(const std::filesystem::path& path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "make", path.parent_path().string()));
  return WholeFile(path);
}

WholeFile::~WholeFile() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove(temporary(), ignored);
}

core::Result<void> WholeFile::commit() {
  std::error_code error;
  std::filesystem::rename(temporary(), path_, error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "write", path_.string()));
  path_.clear();
  return {};
}

core::Result<void> write_whole(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  auto file = WholeFile::begin(path);
  if (!file) return tl::unexpected(std::move(file.error()));
  errno = 0;
  std::ofstream out(file->temporary(), std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) return tl::unexpected(core::from_errno(errno, "write", path.string()));
  return file->commit();
}

}  // namespace troupe::data
