/// The memory of one batch between a loader and its worker, and the form in which batches travel. Thread rule: plain values.
#pragma once

#include <memory>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "core/buffer.hpp"
#include "data/batch_builder.hpp"
#include "nn/backend.hpp"

namespace troupe::actors {

/// How the batches of a worker travel. They are bytes if its backend takes them and they are fewer than those of floats; the numbers that the
/// worker computes are the same.
struct BatchForm {
  std::shared_ptr<const nn::BytePreparation> bytes;  // null: floats
  core::Allocator* memory = nullptr;                 // of the images, outlives the buffers; null: plain memory
};
[[nodiscard]] BatchForm batch_form(const nn::Capabilities& capabilities, const data::BatchBuilder& builder);

class StagingBuffer {
 public:
  /// Room for `batch` samples. Memory that `form.memory` does not have is plain memory. Throws std::bad_alloc.
  StagingBuffer(const BatchForm& form, const data::BatchBuilder& builder, std::int64_t batch);

  /// The buffer as it is lent to decoders and the worker, which keep it alive.
  [[nodiscard]] static BorrowedBatch lend(const std::shared_ptr<StagingBuffer>& buffer);

 private:
  core::Buffer images_;  // floats or bytes
  core::MemorySpace space_ = core::MemorySpace::host;
  std::size_t bytes_ = 0;  // of all images; 0: they are floats
  std::vector<nn::Cut> cuts_;
  std::vector<std::int32_t> labels_;
};

}  // namespace troupe::actors
