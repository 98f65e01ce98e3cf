/// Whether the state of a new run can be made and saved. Runs that are resumed or replayed have saved theirs. Thread rule: a pure function.
#pragma once

#include "core/error.hpp"
#include "experiment/run_spec.hpp"

namespace troupe::experiment {

/// Errc::config names the place in the configuration: more servers than the parameters can be cut into shards for, or a parameter whose
/// name is that of another one's state in a checkpoint ("optimizer.velocity.fc1.bias").
[[nodiscard]] core::Result<void> check_state(const RunSpec& spec);

}  // namespace troupe::experiment
