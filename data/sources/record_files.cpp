#include "data/sources/record_files.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "data/files/open_file.hpp"

namespace troupe::data {

using core::Errc;
using core::fail;
using core::Result;

Result<std::shared_ptr<const RecordFiles>> RecordFiles::open(const RecordFilesOptions& options) {
  std::shared_ptr<RecordFiles> source(new RecordFiles);
  source->options_ = options;
  for (const auto& path : options.files) {
    const auto file = OpenFile::open(path);
    if (!file) return tl::unexpected(file.error());
    const auto bytes = static_cast<std::int64_t>(file->size());
    if (bytes == 0 || bytes % source->record_bytes() != 0)
      return fail(Errc::data, fmt::format("{}: {} bytes are not a whole number of records of {} bytes (data.shape and "
                                          "data.classes say how long one is)",
                                          path.string(), bytes, source->record_bytes()));
    source->begins_.push_back(source->size_);
    source->size_ += bytes / source->record_bytes();
  }
  return source;
}

std::int64_t RecordFiles::record_bytes() const noexcept {
  return options_.shape[0] * options_.shape[1] * options_.shape[2] + options_.classes;
}

std::string RecordFiles::where(std::int64_t index) const {
  const auto file = static_cast<std::size_t>(std::ranges::upper_bound(begins_, index) - begins_.begin()) - 1;
  return fmt::format("{}: record {}", options_.files[file].string(), index - begins_[file]);
}

Result<std::int32_t> RecordFiles::label(std::int64_t index) const {
  thread_local std::vector<std::uint8_t> bytes;
  return fetch(index, bytes);
}

Result<std::int32_t> RecordFiles::fetch(std::int64_t index, std::vector<std::uint8_t>& bytes) const {
  const auto at = static_cast<std::size_t>(std::ranges::upper_bound(begins_, index) - begins_.begin()) - 1;
  const auto file = OpenFile::open(options_.files[at]);
  if (!file) return tl::unexpected(file.error());
  bytes.resize(static_cast<std::size_t>(record_bytes()));
  if (auto read = file->read(static_cast<std::uint64_t>((index - begins_[at]) * record_bytes()), bytes); !read)
    return tl::unexpected(of_record(read.error(), where(index)));
  const auto labels = std::span(bytes).last(static_cast<std::size_t>(options_.classes));
  const auto hot = std::ranges::find_if(labels, [](auto byte) { return byte != 0; });
  if (hot == labels.end() || std::any_of(hot + 1, labels.end(), [](auto byte) { return byte != 0; }))
    return fail(Errc::data, fmt::format("{}: expected exactly one byte of the last {} that is not zero", where(index),
                                        options_.classes));
  const auto label = static_cast<std::int32_t>(hot - labels.begin());
  bytes.resize(bytes.size() - labels.size());
  return label;
}

}  // namespace troupe::data
