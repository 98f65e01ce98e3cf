/// Removes the directory of a run, and the run from the store.
#pragma once

#include <string>

#include "core/error.hpp"
#include "store/run_store.hpp"

namespace troupe::store {

/// Errc::timeout: a process trains there, and nothing is removed; io: something could not be removed. The directory is renamed to
/// `.removing-NAME` first, so that no reader sees a part of a run. If a removal is killed, the next removal in the same directory removes the rest.
[[nodiscard]] core::Result<void> remove_run(RunStore& store, const std::string& path);

}  // namespace troupe::store
