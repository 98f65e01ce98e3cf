#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/command.hpp"
#include "apps/config_arguments.hpp"
#include "apps/output.hpp"
#include "experiment/blueprint.hpp"
#include "sim/cluster_file.hpp"
#include "sim/simulation.hpp"

namespace troupe::apps {
namespace {

struct Arguments {
  std::string config;
  std::string cluster;
  std::vector<std::string> overrides;
  std::int64_t workers = 0;
  std::int64_t seed = -1;
  bool json = false;
};

core::Result<sim::Plan> plan_of(const experiment::Blueprint& blueprint) {
  const auto& settings = *blueprint.settings;
  auto batches = data::batches_per_worker(settings.data, blueprint.workers);
  if (!batches) return tl::unexpected(std::move(batches.error()));
  auto samples = data::published_samples(settings.data, data::Split::train);
  if (!samples) {
    auto data = data::open_dataset(settings.data, data::Split::train);
    if (!data) return tl::unexpected(std::move(data.error()));
    samples = (*data)->size();
  }
  return sim::Plan{.strategy = blueprint.strategy,
                   .needs = blueprint.needs,
                   .workers = blueprint.workers,
                   .servers = blueprint.servers,
                   .seed = static_cast<std::uint64_t>(settings.run.seed),
                   .leases = {.epoch_size = *samples,
                              .epochs = static_cast<std::uint32_t>(settings.run.epochs),
                              .batches = std::move(*batches),
                              .sharing = blueprint.needs.in_step ? data::Sharing::shares : data::Sharing::on_demand,
                              .drop_tail = settings.data.drop_tail},
                   .train = settings.train,
                   .floats = static_cast<std::uint64_t>(blueprint.graph->parameter_count()),
                   .prefetch = settings.data.prefetch,
                   .slowdown = settings.cluster.slowdown,
                   .synthetic_step = std::chrono::round<core::Duration>(
                       std::chrono::duration<double, std::milli>(settings.cluster.synthetic_step_ms)),
                   .max_seconds = settings.run.max_seconds};
}

core::Result<void> run_simulate(const Arguments& arguments) {
  auto overrides = arguments.overrides;
  if (arguments.workers > 0) overrides.push_back(fmt::format("cluster.workers={}", arguments.workers));
  if (arguments.seed >= 0) overrides.push_back(fmt::format("run.seed={}", arguments.seed));
  const auto settings = load_settings(arguments.config, overrides);
  if (!settings) return tl::unexpected(settings.error());
  const auto blueprint = experiment::draw(*settings, false);
  if (!blueprint) return tl::unexpected(blueprint.error());
  const auto file = sim::load_cluster(arguments.cluster);
  if (!file) return tl::unexpected(file.error());
  const auto plan = plan_of(*blueprint);
  if (!plan) return tl::unexpected(plan.error());
  const auto cluster = sim::place(*file, plan->workers, plan->servers);
  if (!cluster) return tl::unexpected(cluster.error());
  auto book = data::LeaseBook::create(plan->leases);
  if (!book) return tl::unexpected(book.error());
  sim::Simulation simulation(*plan, *cluster, std::move(*book));
  const auto outcome = simulation.run();
  if (!outcome) return tl::unexpected(outcome.error());
  return print(fmt::format("{} workers: {:.1f} images/s, {:.2f} times worker 0 alone, {} events, {:.3f} virtual s\n",
                           plan->workers, outcome->images_per_s(),
                           outcome->images_per_s() / outcome->alone_images_per_s, outcome->events,
                           core::seconds(outcome->wall)));
}

Action declare(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("CONFIG", arguments->config, "configuration file (TOML)")->required();
  app.add_option("--cluster", arguments->cluster, "cluster file (TOML): machines, network, failures")->required();
  add_set(app, arguments->overrides);
  app.add_option("--workers", arguments->workers, "short for --set cluster.workers=N")->check(CLI::Range(1, 65535));
  app.add_option("--seed", arguments->seed, "short for --set run.seed=N")->check(CLI::NonNegativeNumber);
  return [arguments] { return run_simulate(*arguments); };
}

}  // namespace

Command simulate() {
  return {.name = "simulate",
          .summary = "forecast a run in virtual time, on machines that a file describes",
          .examples = "  troupe simulate configs/mnist-easgd.toml --cluster configs/clusters/lan.toml --workers 64\n",
          .declare = declare,
          .appendix = [] {
            return "Keys of a cluster file and what they are when it does not set them.\n\n" + sim::cluster_help();
          }};
}

}  // namespace troupe::apps
