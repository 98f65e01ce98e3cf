#include "data/sources/image_folder.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "data/files/found.hpp"
#include "data/files/open_file.hpp"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;
using core::Errc;
using core::fail;
using core::Result;

bool is_hidden(const fs::path& path) { return path.filename().native().starts_with('.'); }

bool has_picture_ending(const fs::path& path) {
  constexpr std::array<std::string_view, 12> kEndings{".jpg", ".jpeg", ".jpe", ".jfif", ".png",  ".apng",
                                                      ".gif", ".bmp",  ".ppm", ".tif",  ".tiff", ".webp"};
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::find(kEndings, ending) != kEndings.end();
}

tl::unexpected<core::Error> unreadable(const fs::path& path, const std::error_code& error) {
  return tl::unexpected(core::from_errno(error.value(), "read", path.string()));
}

/// The paths of the pictures below `folder`, relative to it, sorted.
Result<std::vector<std::string>> pictures_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error), end;
  if (error) return unreadable(folder, error);
  while (entry != end) {
    if (is_hidden(entry->path())) {
      entry.disable_recursion_pending();
    } else if (has_picture_ending(entry->path()) && !entry->is_directory(error)) {
      names.push_back(entry->path().lexically_relative(folder).string());
    }
    entry.increment(error);
    if (error) return unreadable(folder, error);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

Result<std::vector<std::string>> class_folders(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (!is_hidden(entry->path()) && entry->is_directory(error)) names.push_back(entry->path().filename().string());
  if (names.empty())
    return tl::unexpected(not_found(directory, fmt::format("{}: no folder of a class is there{}: expected a folder per "
                                                           "class with its JPEG or PNG files",
                                                           directory.string(), found_in(directory))));
  if (error) return unreadable(directory, error);
  std::ranges::sort(names);
  return names;
}

Result<void> read_whole(const fs::path& path, std::int64_t most_bytes, std::vector<std::uint8_t>& bytes) {
  const auto file = OpenFile::open(path);
  if (!file) return tl::unexpected(file.error());
  if (file->size() == 0) return fail(Errc::data, fmt::format("{}: the file is empty", path.string()));
  if (file->size() > static_cast<std::uint64_t>(most_bytes))
    return fail(Errc::data, fmt::format("{}: {} bytes are too many for a picture (at most {})", path.string(),
                                        file->size(), most_bytes));
  bytes.resize(file->size());
  return file->read(0, bytes);
}

Result<std::shared_ptr<const ImageFolder>> ImageFolder::open(const ImageFolderOptions& options) {
  auto folders = class_folders(options.directory);
  if (!folders) return tl::unexpected(folders.error());
  std::shared_ptr<ImageFolder> source(new ImageFolder);
  source->directory_ = options.directory;
  source->most_bytes_ = options.most_bytes;
  source->classes_ = options.classes.empty() ? *folders : options.classes;
  for (const auto& folder : *folders)
    if (!std::ranges::binary_search(source->classes_, folder))
      return fail(Errc::data, fmt::format("{}: the training split has no class of this name",
                                          (options.directory / folder).string()));
  for (const auto& name : source->classes_) {
    source->begins_.push_back(source->size());
    if (!std::ranges::binary_search(*folders, name)) continue;  // a split need not have every class
    const auto pictures = pictures_in(options.directory / name);
    if (!pictures) return tl::unexpected(pictures.error());
    if (pictures->empty())
      return fail(Errc::data, fmt::format("{}: a class without pictures{}", (options.directory / name).string(),
                                          found_in(options.directory / name)));
    for (const auto& picture : *pictures) {
      source->names_.push_back(source->text_.size());
      source->text_.append(picture).push_back('\0');
    }
  }
  source->begins_.push_back(source->size());
  source->text_.shrink_to_fit();
  source->names_.shrink_to_fit();
  return source;
}

std::size_t ImageFolder::class_of(std::int64_t index) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(begins_, index) - begins_.begin()) - 1;
}

std::string ImageFolder::where(std::int64_t index) const {
  return (directory_ / classes_[class_of(index)] / (text_.c_str() + names_.at(static_cast<std::size_t>(index))))
      .string();
}

Result<std::int32_t> ImageFolder::label(std::int64_t index) const { return static_cast<std::int32_t>(class_of(index)); }

Result<std::int32_t> ImageFolder::fetch(std::int64_t index, std::vector<std::uint8_t>& bytes) const {
  return read_whole(where(index), most_bytes_, bytes).and_then([&] { return label(index); });
}

}  // namespace troupe::data
