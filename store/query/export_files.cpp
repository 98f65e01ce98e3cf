#include "store/query/export_files.hpp"

#include <cerrno>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe::store {

core::Result<void> check_new_directory(const std::string& directory) {
  std::error_code error;
  if (std::filesystem::exists(directory, error) && !std::filesystem::is_empty(directory, error))
    return core::fail(core::Errc::usage, fmt::format("{} is there and is not empty: name a new directory", directory));
  return {};
}

core::Result<void> write_export(const std::filesystem::path& path, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "make", path.parent_path().string()));
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return tl::unexpected(core::from_errno(errno == 0 ? EIO : errno, "write", path.string()));
  return {};
}

std::string utf8_of(const std::string& text) {
  using Json = nlohmann::json;
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

std::string first_bytes(std::string text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) --bytes;
  text.resize(bytes);
  return text;
}

}  // namespace troupe::store
