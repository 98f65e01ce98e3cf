/// Tar files as WebDataset writes them: NAME.jpg (or .jpeg, .png) and NAME.cls, the class as a decimal number, next to each other. A sample
/// is read from its place in the file; the index takes 16 bytes a sample.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "data/sources/source.hpp"

namespace troupe::data {

struct TarShardsOptions {
  std::vector<std::filesystem::path> files;
  std::int32_t classes = 0;     // labels are in [0, classes)
  std::int64_t most_bytes = 0;  // a larger picture is refused
};

class TarShards final : public SampleSource {
 public:
  /// Reads the headers and labels of all files (libarchive), no pictures. Names without an ending and hidden ones are passed over.
  /// Errc::data names file and entry: no tar file, compressed, cut off, a label that is no number or out of range, a sample without picture
  /// or without label, or with two; an entry that is a link, or whose path is absolute or leaves its folder. Nothing is ever unpacked. An
  /// empty picture is an error of fetch().
  [[nodiscard]] static core::Result<std::shared_ptr<const TarShards>> open(const TarShardsOptions& options);

  [[nodiscard]] std::int64_t size() const noexcept override { return static_cast<std::int64_t>(entries_.size()); }
  [[nodiscard]] std::int32_t classes() const noexcept override { return options_.classes; }
  [[nodiscard]] std::vector<std::int64_t> shard_begins() const override { return begins_; }
  [[nodiscard]] core::Result<std::int32_t> label(std::int64_t index) const override;
  [[nodiscard]] core::Result<std::int32_t> fetch(std::int64_t index, std::vector<std::uint8_t>& bytes) const override;
  [[nodiscard]] std::string where(std::int64_t index) const override;

  /// A picture in its file.
  struct Entry {
    std::uint64_t offset = 0;  // of its first byte
    std::uint32_t bytes = 0;
    std::int32_t label = 0;
  };

 private:
  TarShards() = default;
  [[nodiscard]] std::size_t shard_of(std::int64_t index) const;
  TarShardsOptions options_;
  std::vector<std::int64_t> begins_;  // [files]: its first sample
  std::vector<Entry> entries_;        // [size]
};

}  // namespace troupe::data
