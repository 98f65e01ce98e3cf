/// Turns a lease into a batch of images and labels; loaders call it. Images are floats, or bytes that are prepared elsewhere. Immutable except
/// for the sampler's cache. Thread-safe: several decode threads may build batches at once, and the results do not depend on their number.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/error.hpp"
#include "data/dataset.hpp"
#include "data/order/bad_samples.hpp"
#include "data/order/lease.hpp"
#include "data/order/sampler.hpp"
#include "data/preprocessing.hpp"

namespace troupe::data {

struct BatchLimits {
  std::int64_t window =
      0;  // of files of consecutive samples: how many samples are shuffled together (ShardWindows), at most Dataset::most_window(); 0: all
  std::int64_t max_bad = 0;  // unreadable samples that are replaced; one more is an error
};

class BatchBuilder {
 public:
  /// `seed` is the run's, for the epoch's permutation and augmentation. REQUIRES preprocess.source_shape() == data->shape().
  BatchBuilder(std::shared_ptr<const Dataset> data, Preprocess preprocess, std::uint64_t seed,
               Order order = Order::shuffled, const BatchLimits& limits = {});

  [[nodiscard]] const Dataset& dataset() const noexcept { return *data_; }
  [[nodiscard]] std::int64_t size() const noexcept { return data_->size(); }  ///< samples
  [[nodiscard]] ImageShape image_shape() const noexcept {
    return preprocess_.output_shape();
  }  ///< of one image in a batch
  [[nodiscard]] const Preprocess& preprocess() const noexcept { return preprocess_; }
  [[nodiscard]] std::int32_t classes() const noexcept { return data_->classes(); }
  /// Samples that could not be read so far, each counted once. In their place stands the next readable sample of the data set, and its
  /// label: the same in every process and epoch.
  [[nodiscard]] std::int64_t bad_samples() const { return bad_->count(); }

  /// Training: the lease's samples, augmented. Fills the first lease.count images [count, image_shape()] and labels [count]. Throws
  /// std::invalid_argument if the spans are too short. A data error names the file and the record. Returns how many of the samples were
  /// unreadable and replaced (bad_samples()).
  [[nodiscard]] core::Result<std::int64_t> build(const Lease& lease, std::span<float> images,
                                                 std::span<std::int32_t> labels) const;

  /// The same before its preparation: the first lease.count sources `bytes` [count, dataset().shape()], and the view of each. Preprocess::apply
  /// of them gives what build() gives, bit for bit.
  [[nodiscard]] core::Result<std::int64_t> build_bytes(const Lease& lease, std::span<std::uint8_t> bytes,
                                                       std::span<View> views, std::span<std::int32_t> labels) const;

  /// Evaluation: samples [first, first + count) in the data set's order, centred. REQUIRES a range within [0, size()). Fills the
  /// first `count` images and labels and does not touch the rest (nn::Batch::count is the number of valid ones).
  [[nodiscard]] core::Result<void> build_range(std::int64_t first, std::int64_t count, std::span<float> images,
                                               std::span<std::int32_t> labels) const;

  /// The same before its preparation: the first `count` sources `bytes` [count, dataset().shape()]. Preprocess::apply of each with
  /// center_view() gives what build_range() gives, bit for bit.
  [[nodiscard]] core::Result<void> build_range_bytes(std::int64_t first, std::int64_t count,
                                                     std::span<std::uint8_t> bytes,
                                                     std::span<std::int32_t> labels) const;

 private:
  /// The sample that stands for `sample`: itself, or the next one that can be read. Its bytes are in `pixels`.
  struct Readable {
    std::int64_t sample = 0;
    std::int32_t label = 0;
  };
  [[nodiscard]] core::Result<Readable> read(std::int64_t sample, const AugmentKey* key,
                                            std::span<std::uint8_t> pixels) const;
  void check_room(std::int64_t count, std::int64_t sample, std::size_t images, std::size_t labels) const;
  /// Reads samples [first, first + count): sample k into pixels_of(k), then calls use(k).
  template <class PixelsOf, class Use>
  [[nodiscard]] core::Result<void> read_range(std::int64_t first, std::int64_t count, std::span<std::int32_t> labels,
                                              const PixelsOf& pixels_of, const Use& use) const;
  /// Reads the lease's samples: sample k into pixels_of(k), then calls use(k, its view).
  template <class PixelsOf, class Use>
  [[nodiscard]] core::Result<std::int64_t> read_lease(const Lease& lease, std::span<std::int32_t> labels,
                                                      const PixelsOf& pixels_of, const Use& use) const;

  std::shared_ptr<const Dataset> data_;
  Preprocess preprocess_;
  std::uint64_t seed_;
  Sampler sampler_;
  std::shared_ptr<BadSamples> bad_;
};

}  // namespace troupe::data
