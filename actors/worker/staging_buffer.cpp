#include "actors/worker/staging_buffer.hpp"

#include <new>

#include "experiment/batches/batch_memory.hpp"

namespace troupe::actors {
namespace {

core::HostAllocator& plain_memory() {
  static core::HostAllocator allocator;
  return allocator;
}

}  // namespace

BatchForm batch_form(const nn::Capabilities& capabilities, const data::BatchBuilder& builder) {
  return {capabilities.takes_bytes ? experiment::byte_preparation(builder) : nullptr, capabilities.batches};
}

StagingBuffer::StagingBuffer(const BatchForm& form, const data::BatchBuilder& builder, std::int64_t batch)
    : labels_(static_cast<std::size_t>(batch)) {
  const auto samples = static_cast<std::size_t>(batch);
  std::size_t floats = samples * static_cast<std::size_t>(builder.image_shape().size());
  if (form.bytes) {
    bytes_ = samples * static_cast<std::size_t>(form.bytes->source.size());
    cuts_.resize(samples);
    floats = (bytes_ + sizeof(float) - 1) / sizeof(float);
  }
  auto images = core::Buffer::allocate(form.memory ? *form.memory : plain_memory(), floats);
  if (images && form.memory) space_ = form.memory->space();
  if (!images) images = core::Buffer::allocate(plain_memory(), floats);
  if (!images) throw std::bad_alloc();
  images_ = std::move(*images);
}

BorrowedBatch StagingBuffer::lend(const std::shared_ptr<StagingBuffer>& buffer) {
  BorrowedBatch batch{{}, buffer->labels_, buffer};
  batch.space = buffer->space_;
  if (buffer->bytes_ == 0) {
    batch.images = buffer->images_.view();
    return batch;
  }
  batch.bytes = {reinterpret_cast<std::uint8_t*>(buffer->images_.data()), buffer->bytes_};
  batch.cuts = buffer->cuts_;
  return batch;
}

}  // namespace troupe::actors
