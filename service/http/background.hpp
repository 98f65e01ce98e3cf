/// The service's threads let a training on the same processors go first.
#pragma once

namespace troupe::service {

/// Of threads in the background; a training has 0 unless it is started otherwise.
inline constexpr int kBackgroundNice = 10;

/// From now on the calling thread has SCHED_BATCH, so that it preempts nobody when it wakes, and at least kBackgroundNice, so that on a busy
/// processor it gets about a tenth of what a training's thread gets. Threads and processes that it starts inherit that: jobs are started by a
/// thread that never calls it. What already has another policy or a higher nice value keeps it.
void work_in_background() noexcept;

}  // namespace troupe::service
