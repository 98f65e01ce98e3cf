/// The interface of a data set: samples by index, as bytes. Implementations: IDX files, CIFAR-10, glyphs, pictures (data/pictures.hpp: from
/// folders, tar shards, …). Thread rule: many loaders call const members at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "data/images/image_shape.hpp"

namespace troupe::data {

enum class Split : std::uint8_t { train, test };

/// What random augmentation depends on, besides the sample.
struct AugmentKey {
  std::uint64_t seed = 0;  // the run's
  std::uint32_t epoch = 0;
};

/// One split of a data set.
class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::int64_t size() const noexcept = 0;  ///< samples
  [[nodiscard]] virtual ImageShape shape() const noexcept = 0;
  [[nodiscard]] virtual std::int32_t classes() const noexcept = 0;
  /// The names of the classes by number; empty: they have none.
  [[nodiscard]] virtual std::vector<std::string> class_names() const { return {}; }
  /// Decodes sample `index` in [0, size()) into `pixels` [shape().size()], bytes 0 … 255, and returns its label: what evaluation sees.
  /// Errc::data names the file and the record.
  [[nodiscard]] virtual core::Result<std::int32_t> read(std::int64_t index, std::span<std::uint8_t> pixels) const = 0;
  /// The same for training: a data set may choose part of its sample, and change its colours, by (key, index).
  [[nodiscard]] virtual core::Result<std::int32_t> read_augmented(std::int64_t index, const AugmentKey& /*key*/,
                                                                  std::span<std::uint8_t> pixels) const {
    return read(index, pixels);
  }
  /// The label alone; data sets that know it without decoding say it faster.
  [[nodiscard]] virtual core::Result<std::int32_t> label(std::int64_t index) const {
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(shape().size()));
    return read(index, pixels);
  }
  /// The sample as it is stored (for pictures: the JPEG's or PNG's bytes), in `bytes`, whose memory is reused; returns its label.
  [[nodiscard]] virtual core::Result<std::int32_t> stored(std::int64_t index, std::vector<std::uint8_t>& bytes) const {
    bytes.resize(static_cast<std::size_t>(shape().size()));
    return read(index, bytes);
  }
  /// Whether stored() gives pictures, and not plain bytes.
  [[nodiscard]] virtual bool encoded() const noexcept { return false; }
  /// Whether samples are read from files when they are used: a pass over all of them takes long.
  [[nodiscard]] virtual bool streamed() const noexcept { return false; }
  /// Where files of consecutive samples begin (order/sampler.hpp); empty: any order is as good.
  [[nodiscard]] virtual std::vector<std::int64_t> shard_begins() const { return {}; }
  /// The most consecutive samples that are shuffled together; 0: any number.
  [[nodiscard]] virtual std::int64_t most_window() const noexcept { return 0; }
};

}  // namespace troupe::data
