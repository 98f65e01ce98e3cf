#include "data/conversion/whole_file.hpp"

#include <system_error>

namespace troupe::data {

core::Result<WholeFile> WholeFile::begin(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
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

}  // namespace troupe::data
