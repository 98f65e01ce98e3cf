#include "apps/job/request.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include "apps/arguments/config.hpp"
#include "core/text/plural.hpp"
#include "data/picture_sources.hpp"
#include "experiment/run_spec.hpp"

namespace troupe::apps {

namespace {

/// `asked` workers, which the user wrote on the command line for this job, are another number than the job has.
core::Error wrong_number(const std::string& where, std::int64_t asked, std::int64_t per_rank, const Job& job) {
  const auto ranks = static_cast<std::int64_t>(job.size());
  auto remedy = asked % per_rank == 0 ? "start " + core::counted(static_cast<std::uint64_t>(asked / per_rank), "rank")
                                      : std::string("start another number of ranks");
  if (asked % ranks == 0) remedy += fmt::format(", or set cluster.workers_per_rank = {}", asked / ranks);
  return {core::Errc::config,
          fmt::format("{}: cluster.workers = {}, but {} has started {} of {} each: {}, or leave cluster.workers out",
                      where, asked, job.launcher(), core::counted(job.size(), "rank"),
                      core::counted(static_cast<std::uint64_t>(per_rank), "worker"), remedy)};
}

}  // namespace

core::Result<actors::RunRequest> job_request(const std::string& path, std::vector<std::string> overrides, Job& job) {
  auto as_written = core::Config::load(experiment::schema(), path, overrides);
  if (!as_written) return tl::unexpected(as_written.error());
  const auto cluster = as_written->get(experiment::cluster_table());
  const auto per_rank = cluster.workers_per_rank, workers = static_cast<std::int64_t>(job.size()) * per_rank;
  const auto where = as_written->where("cluster.workers");
  const bool differs = where != "default" && cluster.workers != workers;
  if (differs && where == "--set") return tl::unexpected(wrong_number(where, cluster.workers, per_rank, job));
  overrides.push_back(fmt::format("cluster.workers={}", workers));
  auto settings = load_settings(path, overrides, experiment::Use::processes);
  if (!settings) return tl::unexpected(std::move(settings.error()));

  actors::RunRequest request;
  request.settings = std::move(*settings);
  request.launcher = job.launcher();
  request.workers_per_rank = static_cast<std::uint32_t>(per_rank);
  if (differs)
    request.notes.push_back(
        {experiment::Note::Level::warning, fmt::format("{}: cluster.workers = {} is replaced by the job's: {}, {} each",
                                                       where, cluster.workers, core::counted(job.size(), "rank"),
                                                       core::counted(static_cast<std::uint64_t>(per_rank), "worker"))});
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
    auto& data = request.settings.data;
    StageOrder stage;
    if (!data.stage.empty()) {
      auto files = data::files_to_stage(data);
      if (!files) return tl::unexpected(std::move(files.error()));
      stage = {.directory = stage_directory(data.stage), .files = std::move(*files)};
    }
    auto nodes = job.recruit(stage);
    if (!nodes) return tl::unexpected(std::move(nodes.error()));
    data.staged = stage.directory;
    if (!stage.files.empty())
      request.notes.push_back(
          {experiment::Note::Level::info, fmt::format("the ranks have read {} together, into {} on each host",
                                                      core::counted(stage.files.size(), "file"), stage.directory)});
    request.nodes = std::move(nodes->names);
    request.network.tls = nodes->tls;
  }
  return request;
}

}  // namespace troupe::apps
