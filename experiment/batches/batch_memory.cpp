#include "experiment/batches/batch_memory.hpp"

#include <algorithm>

namespace troupe::experiment {

std::shared_ptr<const nn::BytePreparation> byte_preparation(const data::BatchBuilder& builder) {
  const data::Preprocess& preprocess = builder.preprocess();
  const auto source = preprocess.source_shape();
  if (source.size() > builder.image_shape().size() * static_cast<std::int64_t>(sizeof(float))) return nullptr;
  nn::BytePreparation bytes{{source.channels, source.height, source.width}, {}, {}};
  bytes.scale.assign(preprocess.scale().begin(), preprocess.scale().end());
  bytes.bias.assign(preprocess.bias().begin(), preprocess.bias().end());
  return std::make_shared<const nn::BytePreparation>(std::move(bytes));
}

nn::Cut cut_of(const data::View& view) noexcept {
  return {static_cast<std::int32_t>(view.top), static_cast<std::int32_t>(view.left), view.mirrored ? 1 : 0};
}

BatchMemory::BatchMemory(const nn::Replica& replica, const data::BatchBuilder& builder)
    : builder_(builder), labels_(static_cast<std::size_t>(replica.batch())) {
  const auto samples = labels_.size();
  const auto own = replica.bytes() ? byte_preparation(builder) : nullptr;
  if (own && *own == *replica.bytes()) {
    bytes_.resize(samples * static_cast<std::size_t>(own->source.size()));
    views_.resize(samples);
    cuts_.resize(samples);
  } else {
    images_.resize(samples * static_cast<std::size_t>(builder.image_shape().size()));
  }
}

nn::Batch BatchMemory::view(std::uint64_t lease, std::int64_t count) const {
  return {.images = images_, .labels = labels_, .lease = lease, .count = count, .bytes = bytes_, .cuts = cuts_};
}

core::Result<nn::Batch> BatchMemory::build(const data::Lease& lease) {
  const auto built =
      is_bytes() ? builder_.build_bytes(lease, bytes_, views_, labels_) : builder_.build(lease, images_, labels_);
  if (!built) return tl::unexpected(built.error());
  std::ranges::transform(views_, cuts_.begin(), cut_of);
  return view(lease.index, lease.count);
}

core::Result<nn::Batch> BatchMemory::build_range(std::int64_t first, std::int64_t count) {
  const auto built = is_bytes() ? builder_.build_range_bytes(first, count, bytes_, labels_)
                                : builder_.build_range(first, count, images_, labels_);
  if (!built) return tl::unexpected(built.error());
  std::ranges::fill(cuts_, cut_of(builder_.preprocess().center_view()));
  return view(0, count);
}

}  // namespace troupe::experiment
