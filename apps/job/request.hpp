/// The run request of rank 0: the number of ranks determines the number of workers. Thread rule: the main thread.
#pragma once

#include <string>
#include <vector>

#include "actors/run/run.hpp"
#include "apps/job/job.hpp"

namespace troupe::apps {

/// The configuration file `path` with `overrides`, and cluster.workers = ranks × cluster.workers_per_rank; a warning reports a replaced
/// number of the file. Makes the other ranks nodes. Errc::config, also for another number in `overrides`, and the errors of
/// Job::recruit().
[[nodiscard]] core::Result<actors::RunRequest> job_request(const std::string& path, std::vector<std::string> overrides,
                                                           Job& job);

}  // namespace troupe::apps
