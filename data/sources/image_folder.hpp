/// A folder per class, pictures in it: DIRECTORY/CLASS/…/NAME.jpg. Classes are numbered in the order of their names, pictures in the
/// order of theirs. The index takes the pictures' names and eight bytes each.
#pragma once

#include <filesystem>
#include <memory>

#include "data/sources/source.hpp"

namespace troupe::data {

struct ImageFolderOptions {
  std::filesystem::path directory;   // of one split
  std::vector<std::string> classes;  // of the training split; empty: the folders here
  std::int64_t most_bytes = 0;       // a larger file is refused
};

class ImageFolder final : public SampleSource {
 public:
  /// Lists files with the ending of a picture (of any case; also of formats that are not read, which fail when they are used); others and
  /// hidden ones are ignored. Folders within a class's folder are listed too; links to folders are not followed there. Errc::data: no
  /// folder, a class without pictures, a class that the training split does not have. Errc::io: cannot be read.
  [[nodiscard]] static core::Result<std::shared_ptr<const ImageFolder>> open(const ImageFolderOptions& options);

  [[nodiscard]] std::int64_t size() const noexcept override { return static_cast<std::int64_t>(names_.size()); }
  [[nodiscard]] std::int32_t classes() const noexcept override { return static_cast<std::int32_t>(classes_.size()); }
  [[nodiscard]] std::vector<std::string> class_names() const override { return classes_; }
  [[nodiscard]] core::Result<std::int32_t> label(std::int64_t index) const override;
  [[nodiscard]] core::Result<std::int32_t> fetch(std::int64_t index, std::vector<std::uint8_t>& bytes) const override;
  [[nodiscard]] std::string where(std::int64_t index) const override;

 private:
  ImageFolder() = default;
  [[nodiscard]] std::size_t class_of(std::int64_t index) const;
  std::filesystem::path directory_;
  std::vector<std::string> classes_;
  std::vector<std::int64_t> begins_;  // [classes + 1]: the first sample of each class
  std::string text_;                  // the paths within the classes' folders, each ended by a zero
  std::vector<std::uint64_t> names_;  // [size]: where each begins in text_
  std::int64_t most_bytes_ = 0;
};

/// The names of the folders in `directory`, sorted; hidden ones are left out. Errc::data: there is none; io.
[[nodiscard]] core::Result<std::vector<std::string>> class_folders(const std::filesystem::path& directory);

/// The whole file. Errc::data: empty or larger than `most_bytes`; io: cannot be read.
[[nodiscard]] core::Result<void> read_whole(const std::filesystem::path& path, std::int64_t most_bytes,
                                            std::vector<std::uint8_t>& bytes);

}  // namespace troupe::data
