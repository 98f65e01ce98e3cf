/// A CSV file of pictures: a line "path,label" each. Paths are relative to the CSV file's folder. Labels are numbers from 0, or the classes'
/// names. The index takes the paths and 12 bytes each.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/sources/source.hpp"

namespace troupe::data {

struct ImageListOptions {
  std::filesystem::path file;
  std::vector<std::string> class_names;  // of the training split, sorted; empty: labels are numbers
  std::int32_t classes = 0;              // numbers are in [0, classes)
  std::int64_t most_bytes = 0;           // a larger file is refused
};

class ImageList final : public SampleSource {
 public:
  /// Fields may stand in double quotes (a doubled quote within is one). Empty lines are skipped, and a first line of headings: "path,label",
  /// or a word that names no file, and another word. Errc::data names file and line: another number of fields, a label that is not among the
  /// classes; or that there is no sample. Errc::io.
  [[nodiscard]] static core::Result<std::shared_ptr<const ImageList>> open(const ImageListOptions& options);

  [[nodiscard]] std::int64_t size() const noexcept override { return static_cast<std::int64_t>(labels_.size()); }
  [[nodiscard]] std::int32_t classes() const noexcept override;
  [[nodiscard]] std::vector<std::string> class_names() const override { return options_.class_names; }
  [[nodiscard]] core::Result<std::int32_t> label(std::int64_t index) const override;
  [[nodiscard]] core::Result<std::int32_t> fetch(std::int64_t index, std::vector<std::uint8_t>& bytes) const override;
  [[nodiscard]] std::string where(std::int64_t index) const override;

 private:
  ImageList() = default;
  ImageListOptions options_;
  std::string text_;                  // the paths, each ended by a zero
  std::vector<std::uint64_t> paths_;  // [size]: where each begins in text_
  std::vector<std::int32_t> labels_;  // [size]
};

/// The classes that a CSV file of the training split names, sorted; empty if all of its labels are numbers. Errors as ImageList::open().
[[nodiscard]] core::Result<std::vector<std::string>> listed_classes(const std::filesystem::path& file);

}  // namespace troupe::data
