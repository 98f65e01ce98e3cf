/// A data set of pictures of any size, decoded when they are used. Every sample becomes `shape()` bytes: for evaluation resized by its
/// shorter side and cut at the centre; for training the same, or a random part resized (RandomResizedCrop), and colours jittered, by
/// (seed, epoch, index) alone. Memory: the source's index, and a few buffers per decoding thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/dataset.hpp"
#include "data/images/geometry.hpp"
#include "data/images/jitter.hpp"
#include "data/sources/source.hpp"

namespace troupe::data {

struct PictureOptions {
  std::string name;                      // the result of name()
  std::vector<std::string> class_names;  // where the source has none
  std::int64_t side = 0;                 // of the images, pixels; 0: plain images as they are
  std::int64_t shorter = 0;  // evaluation: length of a picture's shorter side before the centre is cut; at least `side`
  bool random_resized_crop = false;  // training: a random part becomes the image
  CropRange range;
  JitterStrength jitter;         // training
  std::int64_t most_pixels = 0;  // larger pictures are refused
  std::int64_t limit = 0;        // use so many samples, evenly spread; 0: all
};

/// Pixels in memory, of one picture.
struct Picture {
  ImageShape shape;
  std::vector<std::uint8_t> pixels;  // [shape]
};

class PictureDataset final : public Dataset {
 public:
  /// Errc::config: encoded pictures need options.side; plain images that are resized, or jittered, must have three channels.
  /// Errc::data: no sample.
  [[nodiscard]] static core::Result<std::shared_ptr<const PictureDataset>> open(
      const PictureOptions& options, std::shared_ptr<const SampleSource> source);

  [[nodiscard]] std::string name() const override { return options_.name; }
  [[nodiscard]] std::int64_t size() const noexcept override { return size_; }
  [[nodiscard]] ImageShape shape() const noexcept override { return shape_; }
  [[nodiscard]] std::int32_t classes() const noexcept override { return source_->classes(); }
  [[nodiscard]] std::vector<std::string> class_names() const override {
    return options_.class_names.empty() ? source_->class_names() : options_.class_names;
  }
  [[nodiscard]] core::Result<std::int32_t> read(std::int64_t index, std::span<std::uint8_t> pixels) const override;
  [[nodiscard]] core::Result<std::int32_t> read_augmented(std::int64_t index, const AugmentKey& key,
                                                          std::span<std::uint8_t> pixels) const override;
  [[nodiscard]] core::Result<std::int32_t> stored(std::int64_t index, std::vector<std::uint8_t>& bytes) const override;
  [[nodiscard]] core::Result<std::int32_t> label(std::int64_t index) const override {
    return source_->label(at(index));
  }
  [[nodiscard]] bool encoded() const noexcept override { return !source_->raw_shape(); }
  [[nodiscard]] bool streamed() const noexcept override { return true; }
  [[nodiscard]] std::vector<std::int64_t> shard_begins() const override;
  [[nodiscard]] std::int64_t most_window() const noexcept override { return source_->most_window(); }

  /// The whole picture as it was taken: RGB of its own size. Errc::data as read().
  [[nodiscard]] core::Result<Picture> picture(std::int64_t index) const;
  /// "file" or "file: record".
  [[nodiscard]] std::string where(std::int64_t index) const { return source_->where(at(index)); }

 private:
  PictureDataset() = default;
  [[nodiscard]] std::int64_t at(std::int64_t index) const;
  [[nodiscard]] core::Result<std::int32_t> image(std::int64_t index, core::Random* random,
                                                 std::span<std::uint8_t> pixels) const;
  [[nodiscard]] core::Result<void> render(std::span<const std::uint8_t> bytes, core::Random* random,
                                          std::span<std::uint8_t> pixels) const;
  [[nodiscard]] core::Error placed(std::int64_t index, const core::Error& error) const;
  PictureOptions options_;
  std::shared_ptr<const SampleSource> source_;
  std::int64_t size_ = 0;
  ImageShape shape_;
};

}  // namespace troupe::data
