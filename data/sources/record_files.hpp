/// Records of fixed length, as the Blue Gene papers store MNIST: the image's bytes, then one byte per class, of which exactly one is not
/// zero. For 28 x 28 and 10 classes a record has 794 bytes. A file has nothing else.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "data/sources/source.hpp"

namespace troupe::data {

struct RecordFilesOptions {
  std::vector<std::filesystem::path> files;
  RawShape shape{};
  std::int32_t classes = 0;
};

/// Keeps nothing but the files' lengths.
class RecordFiles final : public SampleSource {
 public:
  /// Errc::data names the file: empty, or not a whole number of records. Labels are judged when they are read.
  [[nodiscard]] static core::Result<std::shared_ptr<const RecordFiles>> open(const RecordFilesOptions& options);

  [[nodiscard]] std::int64_t size() const noexcept override { return size_; }
  [[nodiscard]] std::int32_t classes() const noexcept override { return options_.classes; }
  [[nodiscard]] std::optional<RawShape> raw_shape() const noexcept override { return options_.shape; }
  [[nodiscard]] std::vector<std::int64_t> shard_begins() const override { return begins_; }
  [[nodiscard]] core::Result<std::int32_t> label(std::int64_t index) const override;
  [[nodiscard]] core::Result<std::int32_t> fetch(std::int64_t index, std::vector<std::uint8_t>& bytes) const override;
  [[nodiscard]] std::string where(std::int64_t index) const override;

 private:
  RecordFiles() = default;
  [[nodiscard]] std::int64_t record_bytes() const noexcept;
  RecordFilesOptions options_;
  std::vector<std::int64_t> begins_;  // [files]: its first sample
  std::int64_t size_ = 0;
};

}  // namespace troupe::data
