/// Completes the files of a run that trained all epochs, but whose process was killed between the last checkpoint and the summary.
#pragma once

#include "actors/protocol/vocabulary.hpp"
#include "experiment/report/console.hpp"
#include "nn/backend.hpp"
#include "nn/checkpoint/checkpoint.hpp"

namespace troupe::actors {

/// REQUIRES the directory's lock, and `spec.leases` restored from `checkpoint`, the newest, and finished. Evaluates the model, writes
/// summary.json from the totals in the checkpoint, and ends metrics.jsonl. Errors (RunEnd::error): Errc::config: nothing is missing, or
/// the run has trained more than run.epochs; those of the backend and of writing.
[[nodiscard]] RunEnd write_missing_summary(const RunSpec& spec, const RunDirectory& directory,
                                           const Checkpoint& checkpoint, nn::Backend& backend,
                                           const report::ConsoleOptions& console);

}  // namespace troupe::actors
