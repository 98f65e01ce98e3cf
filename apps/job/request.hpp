/// What rank 0 of a job asks for: a run whose workers are as many as the ranks say. Thread rule: the main thread.
#pragma once

#include <string>
#include <vector>

#include "actors/run/run.hpp"
#include "apps/job/job.hpp"

namespace troupe::apps {

/// The configuration file `path` with `overrides` on top, with cluster.workers = ranks × cluster.workers_per_rank, which a note
/// tells where another number stood; and the other ranks, made nodes of. Errc::config, and Job::recruit's.
[[nodiscard]] core::Result<actors::RunRequest> job_request(const std::string& path, std::vector<std::string> overrides,
                                                           Job& job);

}  // namespace troupe::apps
