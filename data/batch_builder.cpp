#include "data/batch_builder.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace troupe::data {

namespace {

/// `asked` samples (0: all), as far as the data set can shuffle them together.
ShardWindows windows_of(const Dataset& data, std::int64_t asked) {
  const std::int64_t most = data.most_window();
  return {data.shard_begins(), most > 0 && (asked == 0 || asked > most) ? most : asked};
}

}  // namespace

BatchBuilder::BatchBuilder(std::shared_ptr<const Dataset> data, Preprocess preprocess, std::uint64_t seed, Order order,
                           const BatchLimits& limits)
    : data_(std::move(data)),
      preprocess_(std::move(preprocess)),
      seed_(seed),
      sampler_(seed, data_->size(), order, windows_of(*data_, limits.window)),
      bad_(std::make_shared<BadSamples>(limits.max_bad)) {
  if (preprocess_.source_shape() != data_->shape())
    throw std::invalid_argument("the preprocessing is for images of another shape");
}

void BatchBuilder::check_room(std::int64_t count, std::int64_t sample, std::size_t images, std::size_t labels) const {
  const auto samples = static_cast<std::size_t>(count);
  if (count < 0 || images < samples * static_cast<std::size_t>(sample) || labels < samples)
    throw std::invalid_argument(
        fmt::format("no room for a batch of {} in {} values of images and {} labels", count, images, labels));
}

core::Result<BatchBuilder::Readable> BatchBuilder::read(std::int64_t sample, const AugmentKey* key,
                                                        std::span<std::uint8_t> pixels) const {
  for (std::int64_t tried = 0;; ++tried) {
    const auto label = key ? data_->read_augmented(sample, *key, pixels) : data_->read(sample, pixels);
    if (label) return Readable{sample, *label};
    if (label.error().code != core::Errc::data || tried == data_->size()) return tl::unexpected(label.error());
    if (auto counted = bad_->add(sample, label.error()); !counted) return tl::unexpected(counted.error());
    sample = (sample + 1) % data_->size();
  }
}

template <class PixelsOf, class Use>
core::Result<std::int64_t> BatchBuilder::read_lease(const Lease& lease, std::span<std::int32_t> labels,
                                                    const PixelsOf& pixels_of, const Use& use) const {
  const auto order = sampler_.permutation(lease.epoch);
  const AugmentKey key{seed_, lease.epoch};
  std::int64_t replaced = 0;
  auto position = static_cast<std::size_t>(lease.first) % order->size();
  for (std::size_t i = 0; i < static_cast<std::size_t>(lease.count); ++i) {
    const std::int64_t sample = (*order)[position];
    const auto read = this->read(sample, &key, pixels_of(i));
    if (!read) return tl::unexpected(read.error());
    replaced += read->sample != sample ? 1 : 0;
    labels[i] = read->label;
    use(i, preprocess_.train_view(seed_, lease.epoch, read->sample));
    if (++position == order->size()) position = 0;
  }
  return replaced;
}

core::Result<std::int64_t> BatchBuilder::build(const Lease& lease, std::span<float> images,
                                               std::span<std::int32_t> labels) const {
  check_room(lease.count, image_shape().size(), images.size(), labels.size());
  const auto image = static_cast<std::size_t>(image_shape().size());
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(data_->shape().size()));
  return read_lease(
      lease, labels, [&](std::size_t) { return std::span(pixels); },
      [&](std::size_t i, const View& view) { preprocess_.apply(pixels, view, images.subspan(i * image, image)); });
}

core::Result<std::int64_t> BatchBuilder::build_bytes(const Lease& lease, std::span<std::uint8_t> bytes,
                                                     std::span<View> views, std::span<std::int32_t> labels) const {
  check_room(lease.count, data_->shape().size(), bytes.size(), std::min(labels.size(), views.size()));
  const auto source = static_cast<std::size_t>(data_->shape().size());
  return read_lease(
      lease, labels, [&](std::size_t i) { return bytes.subspan(i * source, source); },
      [&](std::size_t i, const View& view) { views[i] = view; });
}

template <class PixelsOf, class Use>
core::Result<void> BatchBuilder::read_range(std::int64_t first, std::int64_t count, std::span<std::int32_t> labels,
                                            const PixelsOf& pixels_of, const Use& use) const {
  if (first < 0 || first + count > size())
    throw std::out_of_range(fmt::format("samples {} to {} of {}", first, first + count, size()));
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const auto read = this->read(first + static_cast<std::int64_t>(i), nullptr, pixels_of(i));
    if (!read) return tl::unexpected(read.error());
    labels[i] = read->label;
    use(i);
  }
  return {};
}

core::Result<void> BatchBuilder::build_range(std::int64_t first, std::int64_t count, std::span<float> images,
                                             std::span<std::int32_t> labels) const {
  check_room(count, image_shape().size(), images.size(), labels.size());
  const auto image = static_cast<std::size_t>(image_shape().size());
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(data_->shape().size()));
  const View center = preprocess_.center_view();
  return read_range(
      first, count, labels, [&](std::size_t) { return std::span(pixels); },
      [&](std::size_t i) { preprocess_.apply(pixels, center, images.subspan(i * image, image)); });
}

core::Result<void> BatchBuilder::build_range_bytes(std::int64_t first, std::int64_t count,
                                                   std::span<std::uint8_t> bytes,
                                                   std::span<std::int32_t> labels) const {
  check_room(count, data_->shape().size(), bytes.size(), labels.size());
  const auto source = static_cast<std::size_t>(data_->shape().size());
  return read_range(
      first, count, labels, [&](std::size_t i) { return bytes.subspan(i * source, source); }, [](std::size_t) {});
}

}  // namespace troupe::data
