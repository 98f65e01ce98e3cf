/// The command line of a job's program. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "service/jobs/job.hpp"
#include "service/jobs/job_folder.hpp"

namespace troupe::service {

struct JobPaths {
  std::string executable = {};        // `troupe`
  std::string run_directory = {};     // run.dir of every run of the service
  std::vector<std::string> tls = {};  // --ca, --cert and --key for nodes
};

/// The name of the job's file in its folder; empty: it needs none.
[[nodiscard]] std::string config_file_name(const JobSpec& spec);

/// `troupe train`, `launch` or `grid` for the job's present attempt. A job that resumes and whose run is not known begins anew; a grid always
/// goes on with the runs that are missing.
[[nodiscard]] std::vector<std::string> command_line(const Job& job, const JobFolder& folder, const JobPaths& paths);

/// One line as for a shell, to show it.
[[nodiscard]] std::string shell_text(const std::vector<std::string>& words);

/// `directory`, which a run has written, relative to `run_directory`; empty: it is not in there.
[[nodiscard]] std::string run_name(const std::string& directory, const std::string& run_directory);

}  // namespace troupe::service
