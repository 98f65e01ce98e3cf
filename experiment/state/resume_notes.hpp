/// What a resumed run should know of settings that differ from those it was trained with so far. Pure functions; the data is read.
#pragma once

#include <string>
#include <vector>

#include "experiment/run_spec.hpp"
#include "experiment/state/checkpoint.hpp"

namespace troupe::experiment {

/// The fingerprint of the run's data (data/fingerprint.hpp) as a checkpoint keeps it: 16 hexadecimal digits; empty if it cannot be read.
[[nodiscard]] std::string data_fingerprint(const RunSpec& spec);

/// The same of its validation split; "none" without one.
[[nodiscard]] std::string validation_fingerprint(const RunSpec& spec);

/// Whether the validation split is not the one that decided so far, or one of the two sessions has none: scores of the two do not compare.
/// `recorded`: the configuration of the session before. REQUIRES `spec` with its data open.
[[nodiscard]] bool decides_on_another_split(const RunSpec& spec, const Checkpoint& checkpoint,
                                            const core::Config& recorded);

/// Warnings: other data; another validation split; another optimizer; a rate that "auto" became for other workers or another strategy; and a
/// rate that jumps, because the schedule follows a length or a number of workers that has changed. REQUIRES `spec` with its leases
/// restored, and what decides_on_another_split() does.
[[nodiscard]] std::vector<Note> notes_on_resume(const RunSpec& spec, const Checkpoint& checkpoint,
                                                const core::Config& recorded);

}  // namespace troupe::experiment
