/// The end of a run that is complete and could not say so: its process was killed between the last checkpoint and its last words.
#pragma once

#include "experiment/report/console.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "nn/backend.hpp"
#include "nn/checkpoint/checkpoint.hpp"

namespace troupe::actors {

/// REQUIRES the directory's lock, and `plan.book` restored from `checkpoint`, the newest, and finished. Evaluates the model,
/// writes summary.json from what the checkpoint knows of the run, and ends metrics.jsonl. Errors (RunEnd::error): Errc::config when
/// nothing of that is missing, or the run has come further than run.epochs: there is nothing left to do then; those of the backend and of writing.
[[nodiscard]] RunEnd write_missing_summary(const Blueprint& plan, const RunDirectory& directory,
                                           const Checkpoint& checkpoint, nn::Backend& backend,
                                           const report::ConsoleOptions& console);

}  // namespace troupe::actors
