/// MNIST's file format: IDX, as published at http://yann.lecun.com/exdb/mnist; Fashion-MNIST and EMNIST use it too.
///
///     images  00 00 08 03 | count | rows | columns | count·rows·columns bytes      (numbers: 32 bits, big-endian)
///     labels  00 00 08 01 | count | count bytes
///
/// Files may be gzipped. Opening reads everything; it stays in memory as bytes (47 MB for 60,000 × 28 × 28).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset.hpp"

namespace troupe::data {

struct IdxOptions {
  std::filesystem::path directory;
  std::string name = "idx";   // the result of name(); also for error messages
  std::int32_t classes = 10;  // labels are in [0, classes)
  std::int64_t limit = 0;     // keep the first `limit` samples; 0: all
  bool fetchable = false;     // `troupe data fetch` knows it by its name
};

/// One split of an IDX data set. Immutable once open: all members are thread-safe.
class IdxDataset final : public Dataset {
 public:
  /// Looks for train-images, train-labels (t10k-… for the test split) with -idx3-ubyte or .idx3-ubyte (labels: idx1), plain or .gz,
  /// in that order. Errc::data names the file and its error: missing (and the names tried), magic number, dimensions, truncated,
  /// trailing bytes, damaged gzip, different counts, a label out of range (and its record). Errc::io: the file exists and cannot be
  /// read. Memory grows with the contents of the files, not with the sizes in their headers.
  [[nodiscard]] static core::Result<std::shared_ptr<const IdxDataset>> open(const IdxOptions& options, Split split);

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::int64_t size() const noexcept override { return static_cast<std::int64_t>(labels_.size()); }
  [[nodiscard]] ImageShape shape() const noexcept override { return shape_; }
  [[nodiscard]] std::int32_t classes() const noexcept override { return classes_; }
  [[nodiscard]] std::vector<std::string> class_names() const override;  ///< of Fashion-MNIST; of others none
  [[nodiscard]] core::Result<std::int32_t> read(std::int64_t index, std::span<std::uint8_t> pixels) const override;

 private:
  IdxDataset() = default;
  std::string name_;
  ImageShape shape_;
  std::int32_t classes_ = 0;
  std::vector<std::uint8_t> pixels_;  // [size, height, width]
  std::vector<std::uint8_t> labels_;  // [size]
};

}  // namespace troupe::data
