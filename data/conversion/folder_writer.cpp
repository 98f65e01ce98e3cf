#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "data/conversion/writers.hpp"
#include "data/files/whole_file.hpp"

namespace troupe::data {
namespace {

/// Classes are numbered by the order of their folders' names, so the names must be in that order, and usable as names of folders.
std::vector<std::string> folder_names(const WriterOptions& options) {
  auto names = options.class_names;
  const bool usable = std::ranges::none_of(names, [](const std::string& name) {
    return name.empty() || name.front() == '.' || name.find('/') != std::string::npos;
  });
  if (static_cast<std::int32_t>(names.size()) == options.classes && usable && std::ranges::is_sorted(names) &&
      std::ranges::adjacent_find(names) == names.end())
    return names;
  const auto digits = std::to_string(std::max(options.classes - 1, 0)).size();
  std::vector<std::string> numbered;
  for (std::size_t label = 0; label < static_cast<std::size_t>(options.classes); ++label) {
    auto name = fmt::format("{:0{}}", label, digits);
    if (usable && label < names.size()) name += "-" + names[label];
    numbered.push_back(std::move(name));
  }
  return numbered;
}

class FolderWriter final : public SampleWriter {
 public:
  explicit FolderWriter(WriterOptions options) : options_(std::move(options)), names_(folder_names(options_)) {}

  core::Result<void> add(const WrittenSample& sample) override {
    const auto path = options_.directory / options_.split / names_.at(static_cast<std::size_t>(sample.label)) /
                      fmt::format("{:08}.{}", samples_++, sample.ending);
    return write_whole(path, std::as_bytes(sample.bytes));
  }
  core::Result<void> finish() override { return {}; }

 private:
  WriterOptions options_;
  std::vector<std::string> names_;
  std::int64_t samples_ = 0;
};

}  // namespace

std::unique_ptr<SampleWriter> folder_writer(WriterOptions options) {
  return std::make_unique<FolderWriter>(std::move(options));
}

}  // namespace troupe::data
