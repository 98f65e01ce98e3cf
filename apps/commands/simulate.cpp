#include <memory>

#include <fmt/format.h>

#include "apps/arguments/checks.hpp"
#include "apps/arguments/config.hpp"
#include "apps/backends.hpp"
#include "apps/command.hpp"
#include "apps/commands/explore.hpp"
#include "apps/help.hpp"
#include "apps/measured_steps.hpp"
#include "apps/output.hpp"
#include "apps/program.hpp"
#include "apps/progress_line.hpp"
#include "experiment/run_spec.hpp"
#include "sim/forecast/forecast.hpp"

namespace troupe::apps {
namespace {

struct SimulateArguments {
  std::string config;
  std::string cluster;
  std::vector<std::string> overrides;
  std::vector<std::string> cluster_overrides;
  std::string model;
  std::string from;
  std::int64_t workers = 0;
  std::int64_t steps = 0;
  std::int64_t seed = -1;
  std::int64_t explore = 0;
  std::string strategy;
  bool gradients = false;
  bool measure = false;
  bool json = false;
};

core::Result<experiment::Settings> settings_of(const SimulateArguments& arguments) {
  auto overrides = arguments.overrides;
  if (arguments.workers > 0) overrides.push_back(fmt::format("cluster.workers={}", arguments.workers));
  if (arguments.seed >= 0) overrides.push_back(fmt::format("run.seed={}", arguments.seed));
  return core::Config::load(experiment::schema(), arguments.config, overrides).and_then([](core::Config config) {
    return experiment::resolve(std::move(config), experiment::Use::forecast);
  });
}

/// One replica alone: the simulated machines have nothing else to do.
core::Result<std::vector<sim::StepProfile>> measured_here(const experiment::Settings& settings) {
  constexpr double kWindow = 0.5;  // seconds; three of them
  const auto spec = experiment::build_run_spec(settings, false);
  if (!spec) return tl::unexpected(spec.error());
  const auto steps = measure_steps(settings, *spec->graph, kWindow, false);
  if (!steps) return tl::unexpected(steps.error());
  std::vector<sim::StepProfile> profiles;
  for (std::size_t w = 0; w < steps->workers.size(); ++w)
    profiles.push_back({.model = spec->graph->name(),
                        .batch = settings.batch(w),
                        .parameters = static_cast<std::uint64_t>(spec->graph->parameter_count()),
                        .steps_ms = steps->workers[w].steps_ms});
  return profiles;
}

core::Result<void> run_simulate(const SimulateArguments& arguments) {
  if (arguments.explore > 0)
    return run_explore(
        {.runs = arguments.explore, .seed = arguments.seed, .strategy = arguments.strategy, .json = arguments.json});
  if (arguments.config.empty() || arguments.cluster.empty())
    return core::fail(core::Errc::usage,
                      "CONFIG and --cluster are required, or --explore N; see `troupe simulate --help`");
  auto settings = settings_of(arguments);
  if (!settings) return tl::unexpected(std::move(settings.error()));
  auto cluster = sim::load_cluster(arguments.cluster, arguments.cluster_overrides);
  if (!cluster) return tl::unexpected(std::move(cluster.error()));
  if (arguments.gradients || arguments.measure)
    if (auto own = check_no_program(*settings, arguments.gradients ? "--gradients" : "--measure"); !own) return own;
  std::unique_ptr<nn::Backend> backend;
  if (arguments.gradients) {
    auto made = make_backend(*settings);
    if (!made) return tl::unexpected(std::move(made.error()));
    backend = std::move(*made);
  }
  std::vector<sim::StepProfile> measured;
  if (arguments.measure) {
    auto steps = measured_here(*settings);
    if (!steps) return tl::unexpected(std::move(steps.error()));
    measured = std::move(*steps);
  }
  ProgressLine progress("simulate");
  const auto forecast = sim::forecast({.settings = std::move(*settings),
                                       .cluster = std::move(*cluster),
                                       .model = arguments.model,
                                       .from = arguments.from,
                                       .measured = std::move(measured),
                                       .steps = arguments.steps,
                                       .progress = [&](double done) { progress.show(done); },
                                       .gradients = backend.get()});
  progress.clear();
  if (!forecast) return tl::unexpected(forecast.error());
  for (const auto& note : forecast->notes) print_note(note);
  return print(arguments.json ? to_json(*forecast) + "\n" : to_text(*forecast));
}

constexpr auto kSpeeds =
    "\nAn algorithm has speeds of its own in [collectives.ar], [collectives.asa] and so\non: the keys of "
    "[collectives].\n";

Action declare_simulate(CLI::App& app) {
  const auto a = std::make_shared<SimulateArguments>();
  auto* config = app.add_option("CONFIG", a->config, "configuration file (TOML)");
  auto* cluster = app.add_option("--cluster", a->cluster, "cluster file (TOML): machines, network, failures");
  auto* set = add_set(app, a->overrides);
  auto* cluster_set = app.add_option("--cluster-set", a->cluster_overrides, "set a key of the cluster file")
                          ->type_name("KEY=VALUE")
                          ->allow_extra_args(false);
  auto* workers =
      app.add_option("--workers", a->workers, "short for --set cluster.workers=N")->check(whole_between(1, 65'535));
  app.add_option("--seed", a->seed, "short for --set run.seed=N; of the first schedule with --explore")
      ->check(whole_at_least(0));
  auto* steps = app.add_option("--steps", a->steps, "so many steps per worker in place of the configuration's epochs")
                    ->check(whole_between(1, 1e9));
  auto* model =
      app.add_option("--model", a->model, "a [models.NAME] of the cluster file, in place of the configuration's model")
          ->type_name("NAME");
  auto* from = app.add_option("--from", a->from,
                              "step times of a recorded run, or of a profile (`troupe bench step --profile FILE`), in "
                              "place of the cluster file's")
                   ->type_name("RUN_DIR|FILE");
  auto* measure = app.add_flag("--measure", a->measure,
                               "time the configuration's model on this machine, in place of the cluster file's times")
                      ->excludes(from)
                      ->excludes(model);
  auto* gradients = app.add_flag("--gradients", a->gradients, "compute real gradients: accuracy as well as time")
                        ->excludes(steps)
                        ->excludes(model);
  const auto explore =
      app.add_option(
             "--explore", a->explore,
             "no forecast: so many random and adversarial schedules with faults, over all strategies, with their "
             "invariants watched; exit 70 when one is violated")
          ->check(whole_between(1, 1e9));
  for (auto* of_a_forecast : {config, cluster, set, cluster_set, workers, steps, model, from, measure, gradients})
    explore->excludes(of_a_forecast);
  app.add_option("--strategy", a->strategy, "--explore this one only")->type_name("STRATEGY")->needs(explore);
  app.add_flag("--json", a->json, "one line of JSON: a run's summary, in virtual seconds");
  return [a] { return run_simulate(*a); };
}

}  // namespace

Command simulate() {
  return {
      .name = "simulate",
      .summary = "forecast a run in virtual time, on machines that a file describes",
      .examples =
          "  troupe simulate configs/mnist-easgd.toml --cluster configs/clusters/lan.toml --workers 64\n"
          "  troupe simulate configs/mnist-bsp.toml --cluster configs/clusters/lan.toml --steps 100 --json\n"
          "  troupe simulate configs/glyphs-easgd.toml --cluster configs/clusters/lan.toml --workers 32 --gradients\n"
          "  troupe simulate configs/cifar10-easgd.toml --cluster configs/clusters/lan.toml --measure\n"
          "  troupe simulate --help hosts      the keys of a cluster file\n"
          "  troupe simulate runs/20260102-030405-mnist-easgd/config.toml --from runs/20260102-030405-mnist-easgd "
          "--cluster configs/clusters/lan.toml --workers 16\n"
          "  troupe simulate --explore 1000\n",
      .declare = declare_simulate,
      .appendix = [](std::string_view topic, std::size_t columns) {
        return keys_help(sim::cluster_keys(), topic, columns, "troupe simulate", "--cluster-set")
            .map([&](const std::string& text) {
              return topic == "all" || topic == "collectives" ? text + kSpeeds : text;
            });
      }};
}

}  // namespace troupe::apps
