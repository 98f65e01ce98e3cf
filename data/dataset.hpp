/// The interface of a data set: samples by index, as bytes. Implementations: IDX files, CIFAR-10, glyphs. Thread rule: many loaders
/// call const members at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace troupe::data {

enum class Split : std::uint8_t { train, test };

/// The shape of one image. Pixels are stored channel by channel, row by row.
struct ImageShape {
  std::int64_t channels = 1;
  std::int64_t height = 0;
  std::int64_t width = 0;
  [[nodiscard]] std::int64_t size() const noexcept { return channels * height * width; }
  bool operator==(const ImageShape&) const = default;
};

/// One split of a data set.
class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::int64_t size() const noexcept = 0;  ///< samples
  [[nodiscard]] virtual ImageShape shape() const noexcept = 0;
  [[nodiscard]] virtual std::int32_t classes() const noexcept = 0;
  /// One name per class, as the data set has them; empty: they have only numbers.
  [[nodiscard]] virtual std::vector<std::string> class_names() const { return {}; }
  /// Decodes sample `index` in [0, size()) into `pixels` [shape().size()], bytes 0 … 255, and returns its label. Errc::data names
  /// the file and the record.
  [[nodiscard]] virtual core::Result<std::int32_t> read(std::int64_t index, std::span<std::uint8_t> pixels) const = 0;
};

}  // namespace troupe::data
