/// Files of many plain images: a header, all labels, then all images. Numbers are little-endian.
///
///     "TRPBATCH" | version 1 (4 bytes) | channels (4) | height (4) | width (4) | images (8) | labels (4 each) | images, channel by channel
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "data/sources/source.hpp"

namespace troupe::data {

struct BatchFileHeader {
  static constexpr std::size_t kBytes = 32;
  RawShape shape{};
  std::int64_t images = 0;
  [[nodiscard]] std::int64_t image_bytes() const noexcept { return shape[0] * shape[1] * shape[2]; }
};

/// For programs that write such files.
[[nodiscard]] std::array<std::uint8_t, BatchFileHeader::kBytes> to_bytes(const BatchFileHeader& header);

struct BatchFilesOptions {
  std::vector<std::filesystem::path> files;
  std::int32_t classes = 0;  // labels are in [0, classes)
};

/// An image is read from its place; only the labels are kept (4 bytes each).
class BatchFiles final : public SampleSource {
 public:
  /// Errc::data names the file: another format or version, a length that does not fit its header, images of another shape than the first
  /// file's, a label out of range (and its record).
  [[nodiscard]] static core::Result<std::shared_ptr<const BatchFiles>> open(const BatchFilesOptions& options);

  [[nodiscard]] std::int64_t size() const noexcept override { return static_cast<std::int64_t>(labels_.size()); }
  [[nodiscard]] std::int32_t classes() const noexcept override { return options_.classes; }
  [[nodiscard]] std::optional<RawShape> raw_shape() const noexcept override { return shape_; }
  [[nodiscard]] std::vector<std::int64_t> shard_begins() const override { return begins_; }
  [[nodiscard]] core::Result<std::int32_t> label(std::int64_t index) const override;
  [[nodiscard]] core::Result<std::int32_t> fetch(std::int64_t index, std::vector<std::uint8_t>& bytes) const override;
  [[nodiscard]] std::string where(std::int64_t index) const override;

 private:
  BatchFiles() = default;
  [[nodiscard]] core::Result<void> add(const std::filesystem::path& path);
  [[nodiscard]] std::size_t file_of(std::int64_t index) const;
  BatchFilesOptions options_;
  RawShape shape_{};
  std::vector<std::int64_t> begins_;  // [files]: its first sample
  std::vector<std::int32_t> labels_;  // [size]
};

}  // namespace troupe::data
