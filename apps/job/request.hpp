/// The run request of rank 0: the number of ranks determines the number of workers. Thread rule: the main thread.
#pragma once

#include <string>
#include <vector>

#include "actors/run/run.hpp"
#include "apps/job/job.hpp"

namespace troupe::apps {

/// The configuration file `path` with `overrides`, and cluster.workers = ranks × cluster.workers_per_rank; a note reports a replaced
/// number. Makes the other ranks nodes. Errc::config, and the errors of Job::recruit().
[[nodiscard]] core::Result<actors::RunRequest> job_request(const std::string& path, std::vector<std::string> overrides,
                                                           Job& job);

}  // namespace troupe::apps
