/// CIFAR-10 in its binary form, as https://www.cs.toronto.edu/~kriz/cifar.html publishes it: data_batch_1.bin … data_batch_5.bin
/// and test_batch.bin, each a sequence of records without a header:
///
///     label (1 byte, 0 … 9) | red 32 × 32 | green 32 × 32 | blue 32 × 32        3,073 bytes, rows from the top
///
/// Opening reads everything; it stays in memory as bytes (154 MB for the 50,000 training images).
#pragma once

#include <filesystem>
#include <vector>

#include "data/dataset.hpp"

namespace troupe::data {

inline constexpr ImageShape kCifar10Shape{3, 32, 32};
inline constexpr std::int32_t kCifar10Classes = 10;

struct Cifar10Options {
  std::filesystem::path directory;  // contains the six files, or the archive's folder cifar-10-batches-bin with them
  std::int64_t limit = 0;           // keep the first `limit` samples; 0: all
};

/// One split. Immutable once open: all members are thread-safe.
class Cifar10Dataset final : public Dataset {
 public:
  /// The training split is the five batches in the order of their numbers. Errc::data names the file and its error: missing, empty,
  /// truncated (and the record), a label out of range (and the record). A file may hold fewer than the published 10,000 records,
  /// but only whole ones. Errc::io: the file exists and cannot be read.
  [[nodiscard]] static core::Result<std::shared_ptr<const Cifar10Dataset>> open(const Cifar10Options& options,
                                                                                Split split);

  [[nodiscard]] std::string name() const override { return "cifar10"; }
  [[nodiscard]] std::int64_t size() const noexcept override;
  [[nodiscard]] ImageShape shape() const noexcept override { return kCifar10Shape; }
  [[nodiscard]] std::int32_t classes() const noexcept override { return kCifar10Classes; }
  [[nodiscard]] std::vector<std::string> class_names() const override;  ///< of batches.meta.txt
  [[nodiscard]] core::Result<std::int32_t> read(std::int64_t index, std::span<std::uint8_t> pixels) const override;

 private:
  Cifar10Dataset() = default;
  std::vector<std::uint8_t> records_;  // [size, 1 + 3·32·32], as in the files
};

}  // namespace troupe::data
