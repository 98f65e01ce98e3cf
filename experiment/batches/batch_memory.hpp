/// The memory of a batch that is built and computed by one thread: evaluations, replays, simulations. Workers of a run have loaders instead.
#pragma once

#include <memory>
#include <vector>

#include "core/error.hpp"
#include "data/batch_builder.hpp"
#include "nn/backend.hpp"

namespace troupe::experiment {

/// How a replica may prepare images of `builder` itself (CompileOptions::bytes). Null if their bytes are more than their floats.
[[nodiscard]] std::shared_ptr<const nn::BytePreparation> byte_preparation(const data::BatchBuilder& builder);

/// A view of a sample's source as replicas take it.
[[nodiscard]] nn::Cut cut_of(const data::View& view) noexcept;

/// Batches of `builder` for `replica`: of bytes if it prepares those as the builder would, else of floats. The replica computes the same
/// bits. One batch at a time. Thread rule: one thread. Cost: memory for replica.batch() samples.
class BatchMemory {
 public:
  /// `builder` outlives this object. Throws std::bad_alloc.
  BatchMemory(const nn::Replica& replica, const data::BatchBuilder& builder);

  [[nodiscard]] bool is_bytes() const noexcept { return !bytes_.empty(); }
  /// BatchBuilder::build(): a lease of at most a batch. The result is valid until the next call.
  [[nodiscard]] core::Result<nn::Batch> build(const data::Lease& lease);
  /// BatchBuilder::build_range(): at most a batch. The result is valid until the next call.
  [[nodiscard]] core::Result<nn::Batch> build_range(std::int64_t first, std::int64_t count);

 private:
  [[nodiscard]] nn::Batch view(std::uint64_t lease, std::int64_t count) const;

  const data::BatchBuilder& builder_;
  std::vector<float> images_;
  std::vector<std::uint8_t> bytes_;
  std::vector<data::View> views_;
  std::vector<nn::Cut> cuts_;
  std::vector<std::int32_t> labels_;
};

}  // namespace troupe::experiment
