#include "data/batch_builder.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace troupe::data {

BatchBuilder::BatchBuilder(std::shared_ptr<const Dataset> data, Preprocess preprocess, std::uint64_t seed, Order order)
    : data_(std::move(data)), preprocess_(std::move(preprocess)), seed_(seed), sampler_(seed, data_->size(), order) {
  if (preprocess_.source_shape() != data_->shape())
    throw std::invalid_argument("the preprocessing is for images of another shape");
}

void BatchBuilder::check_room(std::int64_t count, std::size_t images, std::size_t labels) const {
  const auto samples = static_cast<std::size_t>(count);
  if (count < 0 || images < samples * static_cast<std::size_t>(image_shape().size()) || labels < samples)
    throw std::invalid_argument(
        fmt::format("no room for a batch of {} in {} floats and {} labels", count, images, labels));
}

core::Result<void> BatchBuilder::build(const Lease& lease, std::span<float> images,
                                       std::span<std::int32_t> labels) const {
  check_room(lease.count, images.size(), labels.size());
  const auto order = sampler_.permutation(lease.epoch);
  const auto image = static_cast<std::size_t>(image_shape().size());
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(data_->shape().size()));
  auto position = static_cast<std::size_t>(lease.first) % order->size();
  for (std::size_t i = 0; i < static_cast<std::size_t>(lease.count); ++i) {
    const std::int64_t sample = (*order)[position];
    const auto label = data_->read(sample, pixels);
    if (!label) return tl::unexpected(label.error());
    labels[i] = *label;
    preprocess_.apply(pixels, preprocess_.train_view(seed_, lease.epoch, sample), images.subspan(i * image, image));
    if (++position == order->size()) position = 0;
  }
  return {};
}

core::Result<void> BatchBuilder::build_range(std::int64_t first, std::int64_t count, std::span<float> images,
                                             std::span<std::int32_t> labels) const {
  check_room(count, images.size(), labels.size());
  if (first < 0 || first + count > size())
    throw std::out_of_range(fmt::format("samples {} to {} of {}", first, first + count, size()));
  const auto image = static_cast<std::size_t>(image_shape().size());
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(data_->shape().size()));
  const View center = preprocess_.center_view();
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const auto label = data_->read(first + static_cast<std::int64_t>(i), pixels);
    if (!label) return tl::unexpected(label.error());
    labels[i] = *label;
    preprocess_.apply(pixels, center, images.subspan(i * image, image));
  }
  return {};
}

}  // namespace troupe::data
