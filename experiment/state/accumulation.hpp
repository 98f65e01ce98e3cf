/// Gradient accumulation: a worker's replica that computes a step's batch in equal parts, the micro-batches, one after the other. The step
/// is the same in the memory of a part: data.batch stays the batch of a step, so leases, exchanges and schedules do not change.
///
///     g = (1/k) Σ_j g_j,   g_j the mean gradient of micro-batch j;   loss = (1/k) Σ_j loss_j;   hits are added
///
/// Numbers: those of the whole batch, but for the rounding of float32 sums in another order (about 1e-6 of the largest summand). Dropout
/// drops the same units. Batch normalisation is the exception: its statistics are of one micro-batch.
/// Cost: k shorter steps, and per micro-batch one pass over the gradients; one more vector of the arena's length. A bucket is ready in the
/// last micro-batch. Thread rule: as nn::Replica.
#pragma once

#include "nn/backend.hpp"

namespace troupe::experiment {

/// Backend::compile for a worker that computes options.batch in `micro_batches` parts (`train.accumulate`); the plan is of one part.
/// Errors: those of Backend::compile; Errc::config if the parts are not equal; out_of_memory.
[[nodiscard]] core::Result<std::unique_ptr<nn::Replica>> compile_worker(nn::Backend& backend, const nn::Graph& graph,
                                                                        const nn::CompileOptions& options,
                                                                        std::int64_t micro_batches);

}  // namespace troupe::experiment
