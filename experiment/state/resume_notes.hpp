/// What a resumed run should know of settings that differ from those it was trained with so far. Pure functions; the data is read.
#pragma once

#include <string>
#include <vector>

#include "experiment/run_spec.hpp"
#include "experiment/state/checkpoint.hpp"

namespace troupe::experiment {

/// The fingerprint of the run's data (data/fingerprint.hpp) as a checkpoint keeps it: 16 hexadecimal digits; empty if it cannot be read.
[[nodiscard]] std::string data_fingerprint(const RunSpec& spec);

/// Warnings: other data; another optimizer; a rate that "auto" became for other workers or another strategy; and with other run.epochs a
/// schedule that jumps, because its length has changed. `recorded`: the configuration of the session before. REQUIRES `spec` with its data
/// open and its leases restored.
[[nodiscard]] std::vector<Note> notes_on_resume(const RunSpec& spec, const Checkpoint& checkpoint,
                                                const core::Config& recorded);

}  // namespace troupe::experiment
