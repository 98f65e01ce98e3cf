/// Batches of a data set as loaders build them: as floats, and as bytes with cuts. For tests.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "data/batch_builder.hpp"
#include "gpu/device/device.hpp"
#include "nn/backend.hpp"
#include "tests/data/numbered_dataset.hpp"

namespace troupe::gpu::testing {

/// 23 numbered samples of `source`, prepared with a mean for each pixel, mirrored, and cut if `crop` > 0: then also over the edge.
[[nodiscard]] inline data::BatchBuilder numbered_batches(const data::ImageShape& source, std::int64_t crop) {
  auto numbered = std::make_shared<data::NumberedDataset>(23, source);
  const auto statistics = data::measure_statistics(*numbered).value();
  const data::PreprocessOptions options{
      .mean = data::Mean::image, .normalise = true, .crop = crop, .pad = crop > 0 ? 2 : 0, .mirror = true};
  return {numbered, data::Preprocess::create(options, source, statistics).value(), 11};
}

[[nodiscard]] inline nn::BytePreparation preparation_of(const data::BatchBuilder& builder) {
  const data::Preprocess& preprocess = builder.preprocess();
  const auto source = preprocess.source_shape();
  return {{source.channels, source.height, source.width},
          {preprocess.scale().begin(), preprocess.scale().end()},
          {preprocess.bias().begin(), preprocess.bias().end()}};
}

/// The samples of one lease, in memory of `memory`; of plain memory if it is null.
class LeasedBatch {
 public:
  LeasedBatch(const data::BatchBuilder& builder, const data::Lease& lease, core::Allocator* memory)
      : lease_(lease), space_(memory ? memory->space() : core::MemorySpace::host) {
    const auto count = static_cast<std::size_t>(lease.count);
    core::Allocator& from = memory ? *memory : plain_;
    const auto floats = count * static_cast<std::size_t>(builder.image_shape().size());
    source_bytes_ = count * static_cast<std::size_t>(builder.dataset().shape().size());
    images_ = core::Buffer::allocate(from, floats).value();
    bytes_ = core::Buffer::allocate(from, (source_bytes_ + 3) / 4).value();
    labels_.resize(count);
    if (!builder.build(lease, images_.view(), labels_)) throw std::runtime_error("no batch");
    std::vector<data::View> views(count);
    if (!builder.build_bytes(lease, {reinterpret_cast<std::uint8_t*>(bytes_.data()), source_bytes_}, views, labels_))
      throw std::runtime_error("no batch of bytes");
    for (const data::View& view : views)
      cuts_.push_back(
          {static_cast<std::int32_t>(view.top), static_cast<std::int32_t>(view.left), view.mirrored ? 1 : 0});
  }

  [[nodiscard]] std::span<float> images() { return images_.view(); }
  [[nodiscard]] nn::Batch floats() const {
    nn::Batch batch{images_.view(), labels_, lease_.index, lease_.count};
    batch.space = space_;
    return batch;
  }
  [[nodiscard]] nn::Batch bytes() const {
    nn::Batch batch{{}, labels_, lease_.index, lease_.count};
    batch.bytes = {reinterpret_cast<const std::uint8_t*>(bytes_.data()), source_bytes_};
    batch.cuts = cuts_;
    batch.space = space_;
    return batch;
  }

 private:
  core::HostAllocator plain_;
  data::Lease lease_;
  core::MemorySpace space_;
  std::size_t source_bytes_ = 0;
  core::Buffer images_;
  core::Buffer bytes_;
  std::vector<std::int32_t> labels_;
  std::vector<nn::Cut> cuts_;
};

}  // namespace troupe::gpu::testing
