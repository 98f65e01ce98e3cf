/// The job of this process according to the environment, before MPI is loaded. Pure.
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

/// Nothing for a process started without a launcher. One rank of mpirun is a job; one task of srun is not, because every command of a Slurm
/// job is one. `variable`: getenv.
[[nodiscard]] std::optional<JobEnvironment> job_environment(const Variable& variable = ::getenv);

}  // namespace troupe::apps
