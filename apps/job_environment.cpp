#include "apps/job_environment.hpp"

#include <array>
#include <charconv>
#include <string_view>

namespace troupe::apps {
namespace {

struct Launcher {
  const char* name;
  const char* size;
  const char* rank;
  std::size_t least;  // smallest number of ranks that is a job
};

// The first match counts: Open MPI's own variables are the most reliable. Not SLURM_NTASKS: batch scripts have it too, and are one process.
constexpr std::array kLaunchers{Launcher{"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", 1},
                                Launcher{"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", 2},
                                Launcher{"mpiexec", "PMI_SIZE", "PMI_RANK", 2}};

std::optional<std::size_t> number(const char* text) {
  if (!text) return std::nullopt;
  const std::string_view digits(text);
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<JobEnvironment> job_environment(const Variable& variable) {
  for (const auto& launcher : kLaunchers) {
    const auto size = number(variable(launcher.size)), rank = number(variable(launcher.rank));
    if (size && rank && *size >= launcher.least && *rank < *size) return JobEnvironment{launcher.name, *rank, *size};
  }
  return std::nullopt;
}

}  // namespace troupe::apps
