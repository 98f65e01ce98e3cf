/// Where the samples of a data set of pictures come from: an index, and a sample's bytes by its number. Implementations read one sample
/// at a time; nothing is kept but the index. Thread rule: immutable once open; many loaders call const members at once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace troupe::data {

/// Channels, height, width of samples that are stored as plain bytes, channel by channel.
using RawShape = std::array<std::int64_t, 3>;

class SampleSource {
 public:
  virtual ~SampleSource() = default;
  [[nodiscard]] virtual std::int64_t size() const noexcept = 0;  ///< samples
  [[nodiscard]] virtual std::int32_t classes() const noexcept = 0;
  /// The names of the classes by number; empty: they have none.
  [[nodiscard]] virtual std::vector<std::string> class_names() const { return {}; }
  /// The shape of all samples, as plain bytes; none: each is an encoded picture (JPEG or PNG) of any size.
  [[nodiscard]] virtual std::optional<RawShape> raw_shape() const noexcept { return std::nullopt; }
  /// Where each file of consecutive samples begins, ascending from 0: an epoch reads such samples nearly in their order. Empty: any order
  /// is as good.
  [[nodiscard]] virtual std::vector<std::int64_t> shard_begins() const { return {}; }
  /// An epoch should not shuffle more of such samples together, because reading one costs as much as reading so many of its neighbours; 0:
  /// any number.
  [[nodiscard]] virtual std::int64_t most_window() const noexcept { return 0; }
  /// The label of sample `index`, without its picture.
  [[nodiscard]] virtual core::Result<std::int32_t> label(std::int64_t index) const = 0;
  /// The sample's bytes into `bytes`, whose memory is reused; returns its label. Errc::data, io name file and record.
  [[nodiscard]] virtual core::Result<std::int32_t> fetch(std::int64_t index,
                                                         std::vector<std::uint8_t>& bytes) const = 0;
  /// "file" or "file: record", for messages.
  [[nodiscard]] virtual std::string where(std::int64_t index) const = 0;
};

}  // namespace troupe::data
