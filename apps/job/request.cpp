#include "apps/job/request.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include "apps/config_arguments.hpp"
#include "core/text/plural.hpp"
#include "experiment/run_spec.hpp"

namespace troupe::apps {

core::Result<actors::RunRequest> job_request(const std::string& path, std::vector<std::string> overrides, Job& job) {
  auto as_written = core::Config::load(experiment::schema(), path, overrides);
  if (!as_written) return tl::unexpected(as_written.error());
  const auto cluster = as_written->get(experiment::cluster_table());
  const auto per_rank = cluster.workers_per_rank, workers = static_cast<std::int64_t>(job.size()) * per_rank;
  overrides.push_back(fmt::format("cluster.workers={}", workers));
  auto settings = load_settings(path, overrides, experiment::Use::processes);
  if (!settings) return tl::unexpected(std::move(settings.error()));

  actors::RunRequest request;
  request.settings = std::move(*settings);
  request.launcher = job.launcher();
  request.workers_per_rank = static_cast<std::uint32_t>(per_rank);
  if (const auto where = as_written->where("cluster.workers"); where != "default" && cluster.workers != workers) {
    request.notes.push_back(
        {experiment::Note::Level::info, fmt::format("{}: cluster.workers = {} gives way to the job: {}, {} each", where,
                                                    cluster.workers, core::counted(job.size(), "rank"),
                                                    core::counted(static_cast<std::uint64_t>(per_rank), "worker"))});
  }
  // Where the launcher binds ranks to cores, this process sees only its own, and the launcher has counted them.
  const bool bound =
      std::getenv("OMPI_MCA_orte_bound_at_launch") != nullptr || std::getenv("SLURM_CPU_BIND") != nullptr;
  std::vector<std::uint32_t> here(job.ranks_here() * static_cast<std::size_t>(per_rank));
  std::iota(here.begin(), here.end(), 0U);
  if (auto crowded = experiment::crowding(request.settings, here, std::max(1U, std::thread::hardware_concurrency()),
                                          "this machine");
      crowded && !bound)
    request.notes.push_back(std::move(*crowded));
  if (job.size() > 1) {
    auto nodes = job.recruit();
    if (!nodes) return tl::unexpected(std::move(nodes.error()));
    request.nodes = std::move(nodes->names);
    request.network.tls = nodes->tls;
  }
  return request;
}

}  // namespace troupe::apps
