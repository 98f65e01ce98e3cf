/// Removes the directory of a run, and the run from the store. Thread rule: that of the store.
#pragma once

#include <functional>
#include <string>

#include "core/error.hpp"
#include "experiment/directory/directory_lock.hpp"
#include "store/run_store.hpp"

namespace troupe::store {

/// Takes the lock of a run's directory: DirectoryLock::take, or a test's replacement.
using TakeLock = std::function<core::Result<experiment::DirectoryLock>(const std::string& directory)>;

/// `path` is relative to the store's directory: `run` or `grid/run`. No symbolic link is followed. Errc::config: it is no run, and nothing
/// is removed; timeout: a process trains there, or may do so where there are no locks, and nothing is removed; io: something could not be
/// removed. Errc::config, too, where another process has replaced the directory meanwhile: what it has put there stays. The directory is moved into the hidden `.removing-UID` beside it first, so that no reader sees a part of a run; what a killed
/// removal has left there is removed by the next one. On a full disk the directory is removed although the store cannot forget the run: the next look
/// does that. Where there is not even room for the hidden folder, a reader may see a part of the run meanwhile.
[[nodiscard]] core::Result<void> remove_run(RunStore& store, const std::string& path, const TakeLock& take = {});

}  // namespace troupe::store
