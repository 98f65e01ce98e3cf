#include "gpu/input_buffers.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "nn/program/step_checks.hpp"

namespace troupe::gpu {
namespace {

constexpr std::size_t kPartAlignment = 256;

std::size_t aligned_part(std::size_t bytes) { return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment; }

std::size_t cuts_offset(std::int64_t batch) {
  return aligned_part(kLabelsOffset + static_cast<std::size_t>(batch) * sizeof(std::int32_t));
}
std::size_t head_bytes(std::int64_t batch, bool is_bytes) {
  return cuts_offset(batch) + (is_bytes ? aligned_part(static_cast<std::size_t>(batch) * sizeof(Cut)) : 0);
}
std::size_t slot_bytes(const nn::Graph& graph, const nn::CompileOptions& options) {
  const auto samples = static_cast<std::size_t>(options.batch);
  const std::size_t pixels = options.bytes ? samples * static_cast<std::size_t>(options.bytes->source.size())
                                           : samples * static_cast<std::size_t>(graph.input().size()) * sizeof(float);
  return head_bytes(options.batch, options.bytes != nullptr) + aligned_part(pixels);
}
std::size_t slots_of(const nn::CompileOptions& options) { return options.training ? 2 : 1; }

// The kernel's cuts are copied from the batch's as they are.
static_assert(sizeof(Cut) == sizeof(nn::Cut) && offsetof(Cut, top) == offsetof(nn::Cut, top) &&
              offsetof(Cut, left) == offsetof(nn::Cut, left) && offsetof(Cut, mirror) == offsetof(nn::Cut, mirror));

core::Result<core::Buffer> device_buffer(Device& device, std::size_t bytes, const char* what) {
  return core::Buffer::allocate(device.memory(), core::align_floats((bytes + sizeof(float) - 1) / sizeof(float)), what);
}

bool has_two_orders(const nn::Shape& shape) { return shape.channels > 1 && shape.height * shape.width > 1; }

TensorShape shape_of(std::int64_t batch, const nn::Shape& shape) {
  return {batch, shape.height, shape.width, shape.channels};
}

}  // namespace

std::size_t InputBuffers::bytes(const nn::Graph& graph, const nn::CompileOptions& options) {
  return slots_of(options) * slot_bytes(graph, options);
}

core::Result<std::array<core::Buffer, 2>> InputBuffers::allocate(Device& device, const nn::Graph& graph,
                                                                 const nn::CompileOptions& options) {
  std::array<core::Buffer, 2> buffers;
  for (std::size_t i = 0; i < slots_of(options); ++i) {
    auto buffer = device_buffer(device, slot_bytes(graph, options), "batches on their way");
    if (!buffer) return tl::unexpected(std::move(buffer.error()));
    buffers[i] = std::move(*buffer);
  }
  return buffers;
}

InputBuffers::InputBuffers(Device& device, Staging& staging, const Program& program, const nn::Graph& graph,
                           const nn::CompileOptions& options)
    : device_(device),
      staging_(staging),
      program_(program),
      input_(graph.input()),
      batch_(options.batch),
      count_(slots_of(options)) {}

core::Result<std::unique_ptr<InputBuffers>> InputBuffers::make(Device& device, Staging& staging, Compiled& compiled,
                                                               const nn::Graph& graph,
                                                               const nn::CompileOptions& options) {
  std::unique_ptr<InputBuffers> made(new InputBuffers(device, staging, compiled.program, graph, options));
  auto stream = device.make_stream();
  if (!stream) return tl::unexpected(std::move(stream.error()));
  made->loader_ = std::move(*stream);
  const std::size_t head = head_bytes(options.batch, options.bytes != nullptr);
  for (std::size_t i = 0; i < made->count_; ++i) {
    Slot& slot = made->slots_[i];
    slot.head = reinterpret_cast<std::byte*>(compiled.inputs[i].data());
    slot.pixels = slot.head + head;
    auto pinned =
        core::Buffer::allocate(device.pinned(), core::align_floats(head / sizeof(float)), "labels of a batch");
    if (!pinned) return tl::unexpected(std::move(pinned.error()));
    slot.pinned = std::move(*pinned);
    for (auto* event : {&slot.copied, &slot.read}) {
      auto recorded = device.make_event();
      if (!recorded) return tl::unexpected(std::move(recorded.error()));
      *event = std::move(*recorded);
    }
  }
  if (!options.bytes) return made;

  const nn::BytePreparation& bytes = *options.bytes;
  made->source_ = bytes.source;
  auto constants =
      device_buffer(device, (bytes.bias.size() + bytes.scale.size()) * sizeof(float), "the preparation of images");
  if (!constants) return tl::unexpected(std::move(constants.error()));
  made->constants_ = std::move(*constants);
  float* const to = made->constants_.data();
  for (const auto& [values, at] : {std::pair(&bytes.bias, to), {&bytes.scale, to + bytes.bias.size()}})
    if (auto copied = staging.upload(*made->loader_, at, values->data(), values->size() * sizeof(float)); !copied)
      return tl::unexpected(std::move(copied.error()));
  if (compiled.program.images.is_plain && has_two_orders(graph.input())) {
    auto upright = device_buffer(device, static_cast<std::size_t>(options.batch * graph.input().size()) * sizeof(float),
                                 "images of a batch");
    if (!upright) return tl::unexpected(std::move(upright.error()));
    made->upright_ = std::move(*upright);
  }
  if (auto waited = made->loader_->synchronize(); !waited) return tl::unexpected(std::move(waited.error()));
  return made;
}

InputBuffers::Key InputBuffers::key_of(const nn::Batch& batch, std::int64_t samples) noexcept {
  const void* images = batch.images.data();
  if (!batch.bytes.empty()) images = batch.bytes.data();
  return {images, batch.lease, batch.first, samples};
}

void InputBuffers::check(const nn::Batch& batch, std::int64_t samples) const {
  if (batch.bytes.empty()) return nn::check_batch(batch, batch_, input_.size(), samples);
  if (!source_) throw std::invalid_argument("a batch of bytes for a replica that was not compiled for them");
  nn::check_byte_batch(batch, batch_, source_->size(), samples);
}

InputBuffers::Slot* InputBuffers::find(const Key& batch) noexcept {
  const auto found = std::ranges::find(slots_, batch, &Slot::batch);
  return found == slots_.end() ? nullptr : &*found;
}

InputBuffers::Slot* InputBuffers::free_slot() noexcept {
  for (std::size_t i = 0; i < count_; ++i)
    if (!slots_[i].batch) return &slots_[i];
  return nullptr;
}

core::Result<void> InputBuffers::wait_for_copy(Slot& slot) {
  if (!slot.may_be_copying) return {};
  auto waited = staging_.wait_for(*slot.copied);
  if (waited) slot.may_be_copying = false;
  return waited;
}

core::Result<void> InputBuffers::make_floats(Slot& slot) {
  const std::size_t bytes = static_cast<std::size_t>(batch_ * input_.size()) * sizeof(float);
  if (!source_ || slot.floats.size() * sizeof(float) >= bytes) return {};
  auto floats = device_buffer(device_, bytes, "a batch on its way");
  if (!floats) return tl::unexpected(std::move(floats.error()));
  slot.floats = std::move(*floats);
  return {};
}

core::Result<void> InputBuffers::copy(Slot& slot, const nn::Batch& batch, std::int64_t samples) {
  slot.is_bytes = !batch.bytes.empty();
  if (!slot.is_bytes)
    if (auto made = make_floats(slot); !made) return made;
  if (auto waited = wait_for_copy(slot); !waited) return waited;
  auto* const head = reinterpret_cast<std::byte*>(slot.pinned.data());
  const StepInput now{{batch.lease, batch.first}, samples};
  std::memcpy(head, &now, sizeof(now));
  if (samples > 0)
    std::memcpy(head + kLabelsOffset, batch.labels.data(), static_cast<std::size_t>(samples) * sizeof(std::int32_t));
  if (slot.is_bytes) std::memcpy(head + cuts_offset(batch_), batch.cuts.data(), batch.cuts.size_bytes());

  if (auto waits = loader_->wait(*slot.read); !waits) return waits;
  slot.may_be_copying = true;
  if (auto copied = loader_->copy_to_device(slot.head, head, head_bytes(batch_, slot.is_bytes)); !copied) return copied;
  const void* const images = slot.is_bytes ? static_cast<const void*>(batch.bytes.data()) : batch.images.data();
  const std::size_t bytes = slot.is_bytes ? batch.bytes.size_bytes() : batch.images.size_bytes();
  void* const to = slot.is_bytes || !source_ ? static_cast<void*>(slot.pixels) : slot.floats.data();
  auto copied = batch.space == core::MemorySpace::host_pinned ? loader_->copy_to_device(to, images, bytes)
                                                              : staging_.upload(*loader_, to, images, bytes);
  if (!copied) return copied;
  return loader_->record(*slot.copied);
}

void InputBuffers::prefetch(const nn::Batch& batch) {
  if (batch.space != core::MemorySpace::host_pinned || count_ < 2 || find(key_of(batch, batch_))) return;
  Slot* const slot = free_slot();
  if (!slot) return;
  check(batch, batch_);
  loader_->push_range("prefetch");
  const auto copied = copy(*slot, batch, batch_);
  loader_->pop_range();
  if (copied)
    slot->batch = key_of(batch, batch_);
  else
    (void)loader_->synchronize();  // a part of it may be under way; the step copies it again, and fails alike
}

void InputBuffers::discard(const nn::Batch& batch) {
  Slot* const slot = find(key_of(batch, batch_));
  if (!slot) return;
  if (!wait_for_copy(*slot)) (void)loader_->synchronize();
  slot->batch.reset();
}

core::Result<void> InputBuffers::begin(Stream& compute, const nn::Batch& batch, std::int64_t samples) {
  is_open_ = true;
  Slot* slot = find(key_of(batch, samples));
  if (!slot) {
    slot = free_slot();
    if (!slot) slot = &slots_[oldest_];
    if (auto copied = copy(*slot, batch, samples); !copied) return copied;
  }
  oldest_ = count_ < 2 || slot != slots_.data() ? 0 : 1;
  if (auto waits = compute.wait(*slot->copied); !waits) return waits;
  slot->batch.reset();
  const std::size_t input = kLabelsOffset + static_cast<std::size_t>(batch_) * sizeof(std::int32_t);
  if (auto copied = compute.copy(program_.input, slot->head, input); !copied) return copied;
  if (auto prepared = prepare(compute, *slot); !prepared) return prepared;
  return compute.record(*slot->read);
}

core::Result<void> InputBuffers::prepare(Stream& compute, const Slot& slot) {
  if (slot.is_bytes) return prepare_bytes(compute, slot);
  const ImagesInput& images = program_.images;
  const auto* const from = source_ ? slot.floats.data() : reinterpret_cast<const float*>(slot.pixels);
  if (images.is_plain)
    return compute.copy(images.memory, from, static_cast<std::size_t>(batch_ * input_.size()) * sizeof(float));
  return compute.launch(ImagesToNhwc{from, images.memory, images.shape, input_.channels, images.type});
}

core::Result<void> InputBuffers::prepare_bytes(Stream& compute, const Slot& slot) {
  const ImagesInput& images = program_.images;
  const auto bias = static_cast<std::size_t>(source_->size());
  BytesToNhwc kernel{.from = reinterpret_cast<const std::uint8_t*>(slot.pixels),
                     .to = images.memory,
                     .cuts = reinterpret_cast<const Cut*>(slot.head + cuts_offset(batch_)),
                     .scale = constants_.data() + bias,
                     .bias = constants_.data(),
                     .from_shape = shape_of(batch_, *source_),
                     .to_shape = images.shape,
                     .type = images.type};
  if (upright_.empty()) return compute.launch(kernel);
  kernel.to = upright_.view().data();
  if (auto launched = compute.launch(kernel); !launched) return launched;
  return compute.launch(Transpose{.from = kernel.to,
                                  .to = images.memory,
                                  .batch = batch_,
                                  .rows = input_.height * input_.width,
                                  .columns = input_.channels,
                                  .type = Type::fp32});
}

void InputBuffers::ended() noexcept {
  is_open_ = false;
  for (Slot& slot : slots_) slot.may_be_copying = slot.may_be_copying && slot.batch.has_value();
}

void InputBuffers::leave(const nn::Batch& batch) {
  discard(batch);
  if (!is_open_) return;
  (void)loader_->synchronize();
  is_open_ = false;
}

}  // namespace troupe::gpu
