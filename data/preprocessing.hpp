/// From stored bytes to a model's input: scale, subtract the mean, normalise, then crop and mirror.
///
///     value = (byte / 255 − mean) / deviation        (without `normalise`: deviation = 1)
///
/// Augmentation is random for training and centred for validation. It depends on (seed, epoch, sample) alone, so a sample looks the
/// same in every worker, thread and batch.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "data/dataset.hpp"

namespace troupe::data {

/// The mean to subtract: none, one value per channel, or an image of means, pixel by pixel.
enum class Mean : std::uint8_t { none, channel, image };

struct PreprocessOptions {
  Mean mean = Mean::channel;
  bool normalise = false;  // divide by the channel's standard deviation
  std::int64_t crop = 0;   // pixels, side of the square crop; 0: the whole image
  std::int64_t pad = 0;  // pixels on each side that a training crop may reach outside; they read 0 after normalisation
  bool mirror = false;   // training: mirrors a random half of the samples left to right
};

/// Statistics of the training split, with byte 255 as 1.
struct Statistics {
  std::vector<double> channel_mean;       // [channels]
  std::vector<double> channel_deviation;  // [channels], population; 1 where a channel is constant
  std::vector<double> image_mean;         // [channels, height, width]
};

struct StatisticsLimits {
  std::int64_t samples = 0;  // measure so many, evenly spread; 0: all
  std::int64_t max_bad = 0;  // unreadable ones that are left out; one more is an error
};

/// One pass over the data. Sums are of integers: the result is exact and the same on every machine. Errors as Dataset::read. `on_progress`
/// gets the share that is done. REQUIRES a data set that is not empty.
[[nodiscard]] core::Result<Statistics> measure_statistics(const Dataset& data, const StatisticsLimits& limits = {},
                                                          const std::function<void(double)>& on_progress = {});

/// The visible part of a sample. `top` and `left` are in pixels of the source, and negative inside the padding.
struct View {
  std::int64_t top = 0;
  std::int64_t left = 0;
  bool mirrored = false;
  bool operator==(const View&) const = default;
};

/// The shape of batch images for source images of shape `source`. Errc::config: the crop is larger than the padded image.
[[nodiscard]] core::Result<ImageShape> output_shape(const PreprocessOptions& options, ImageShape source);

/// Immutable: all members are thread-safe.
class Preprocess {
 public:
  /// Errors: those of output_shape().
  [[nodiscard]] static core::Result<Preprocess> create(const PreprocessOptions& options, ImageShape source,
                                                       const Statistics& statistics);

  [[nodiscard]] ImageShape source_shape() const noexcept { return source_; }
  [[nodiscard]] ImageShape output_shape() const noexcept { return output_; }

  /// value = byte · scale()[channel] + bias()[pixel], for the pixels of the source image [source_shape()].
  [[nodiscard]] std::span<const float> scale() const noexcept { return scale_; }
  [[nodiscard]] std::span<const float> bias() const noexcept { return bias_; }

  /// The view of sample `sample` (its number in the data set, below 2^40) in `epoch`. Top, left and side are always drawn in this
  /// order, so enabling one kind of augmentation does not change the others.
  [[nodiscard]] View train_view(std::uint64_t seed, std::uint32_t epoch, std::int64_t sample) const;
  [[nodiscard]] View center_view() const noexcept;

  /// `pixels` [source_shape()] → `out` [output_shape()]. One pass; allocates nothing.
  void apply(std::span<const std::uint8_t> pixels, const View& view, std::span<float> out) const;

 private:
  Preprocess() = default;
  PreprocessOptions options_;
  ImageShape source_;
  ImageShape output_;
  std::vector<float> scale_;  // [channels]: value = byte · scale + bias
  std::vector<float> bias_;   // [source_]
};

}  // namespace troupe::data
