/// Jobs and nodes as JSON, and jobs from JSON. Pure.
#pragma once

#include "service/http/message.hpp"
#include "service/jobs/job_scheduler.hpp"
#include "service/nodes/node_registry.hpp"
#include "service/options/config_check.hpp"

namespace troupe::service {

/// A row of GET /jobs. What is not known is null.
[[nodiscard]] Json json_of(const Job& job);
/// The row with `config`, `command_line` and `history`.
[[nodiscard]] Json json_of(const JobDetails& details);
/// A row of GET /nodes.
[[nodiscard]] Json json_of(const NodeRow& node);

struct JobRequest {
  JobSpec spec;
  bool start = true;
  std::vector<ConfigProblem> problems{};  // of the configuration; with any, the specification is not complete
};
/// The body of POST /jobs. The configuration of a training, and of a launch that has one, is checked as POST /check does it; that of a
/// grid, whose base is another file, when the job begins. Errc::usage, config.
[[nodiscard]] core::Result<JobRequest> job_request(const Json& body, const std::string& user);

}  // namespace troupe::service
