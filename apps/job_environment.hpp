/// What the environment says about the job that this process is a part of, before MPI is loaded. Pure.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

namespace troupe::apps {

struct JobEnvironment {
  std::string launcher;  // "mpirun", "srun": for messages
  std::size_t rank = 0;
  std::size_t size = 1;
};

using Variable = std::function<const char*(const char*)>;

/// Nothing for a process that was started by itself. One rank of mpirun is a job; one task of srun is what every command of a Slurm job
/// is, and no job of its own. `variable`: getenv.
[[nodiscard]] std::optional<JobEnvironment> job_environment(const Variable& variable = ::getenv);

}  // namespace troupe::apps
