#include "sim/forecast/forecast.hpp"

#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiment/exchange_check.hpp"
#include "experiment/run_spec.hpp"
#include "sim/cluster/cluster_tables.hpp"
#include "sim/cluster/recorded.hpp"
#include "sim/exchange/gradients.hpp"
#include "sim/simulation.hpp"
#include "sim/step_time_model.hpp"

namespace troupe::sim {
namespace {

/// Limit per epoch, so that counts of leases and bytes fit.
constexpr std::int64_t kMostSamples = 100'000'000'000'000;

/// The size of a model.
struct Size {
  std::string name;
  std::uint64_t parameters = 0;
  std::uint32_t tensors = 1;
  double image_ms = 0;
  std::int64_t epoch_samples = 0;
};

core::Result<Size> size_of_model(const ForecastRequest& request) {
  if (!request.model.empty())
    return request.cluster.model(request.model).map([&](const ModelSizeConfig& model) {
      return Size{.name = request.model,
                  .parameters = static_cast<std::uint64_t>(model.parameters),
                  .tensors = static_cast<std::uint32_t>(model.tensors),
                  .image_ms = model.image_ms,
                  .epoch_samples = model.epoch_samples};
    });
  return experiment::build_run_spec(request.settings, false).map([](const experiment::RunSpec& spec) {
    return Size{.name = spec.graph->name(),
                .parameters = static_cast<std::uint64_t>(spec.graph->parameter_count()),
                .tensors = static_cast<std::uint32_t>(spec.graph->parameters().size())};
  });
}

core::Result<std::int64_t> training_samples(const data::DataConfig& data, std::int64_t of_model) {
  if (of_model > 0) return of_model;
  if (const auto published = data::published_samples(data, data::Split::train)) return *published;
  return data::open_dataset(data, data::Split::train).map([&](const auto& split) {
    return data::samples_to_train(data, split->size());
  });
}

core::Result<SimulatedRun> run_of(const ForecastRequest& request, const Size& size) {
  const auto& settings = request.settings;
  const auto workers = static_cast<std::uint32_t>(settings.cluster.workers);
  auto strategy = experiment::make_strategy(settings);
  if (!strategy) return tl::unexpected(std::move(strategy.error()));
  auto batches = data::batches_per_worker(settings.data, workers);
  if (!batches) return tl::unexpected(std::move(batches.error()));
  auto samples = training_samples(settings.data, size.epoch_samples);
  if (!samples) return tl::unexpected(std::move(samples.error()));
  SimulatedRun run;
  run.strategy = std::move(*strategy);
  run.needs = run.strategy->needs();
  run.workers = workers;
  run.servers = run.needs.servers ? static_cast<std::uint32_t>(settings.cluster.servers) : 0;
  run.seed = static_cast<std::uint64_t>(settings.run.seed);
  run.leases = {.epoch_size = *samples,
                .epochs = static_cast<std::uint32_t>(settings.run.epochs),
                .batches = std::move(*batches),
                .sharing = run.needs.in_step ? data::Sharing::equal : data::Sharing::on_demand,
                .drop_tail = settings.data.drop_tail};
  if (request.steps > 0) {
    run.leases.epochs = 1;
    std::int64_t batch = 0;
    for (const auto each : run.leases.batches) batch += each;  // at most 65,535 times 10⁹
    if (batch > kMostSamples / request.steps)
      return core::fail(core::Errc::config, fmt::format("{} steps of {} samples, all workers together, are more than a "
                                                        "forecast counts: lower --steps or data.batch",
                                                        request.steps, batch));
    run.leases.epoch_size = batch * request.steps;
  }
  run.train = settings.train;
  run.floats = size.parameters;
  run.tensors = size.tensors;
  run.wire_bytes = settings.exchange.wire == "fp32" ? 4 : 2;
  run.algorithm = experiment::reduction_algorithm(settings.exchange);
  // As if all were in one process: with several, loaders hold more, which changes no time as long as none waits.
  run.prefetch = settings.data.batches_ahead(static_cast<std::size_t>(settings.cluster.workers));
  run.slowdown = settings.cluster.slowdown;
  run.synthetic_step =
      std::chrono::round<Duration>(std::chrono::duration<double, std::milli>(settings.cluster.synthetic_step_ms));
  run.max_seconds = settings.run.max_seconds;
  run.max_epochs = static_cast<std::uint32_t>(settings.run.max_epochs);
  run.evaluations = settings.evaluation;
  run.evaluates_beside = settings.run.evaluation == "beside";
  run.watch = experiment::watch_options(settings.run, settings.train);
  return run;
}

/// The strategy's placement of its servers; empty: not set.
std::string placement_of(const experiment::Settings& settings) {
  constexpr const char* kKey = "strategy.placement";
  if (!experiment::schema().find(kKey, settings.strategy)) return {};
  return std::get<std::string>(settings.config.value(kKey));
}

/// Where the step times come from, and what replaces the hosts' own.
struct GivenTimes {
  std::vector<StepTimes> steps;  // none: the hosts' own
  std::string source;
};

core::Result<GivenTimes> times_of_run(const ForecastRequest& request, const Size& size) {
  const auto recorded = load_recorded(request.from);
  if (!recorded) return tl::unexpected(recorded.error());
  if (recorded->micro_batches != request.settings.train.accumulate)
    return core::fail(
        core::Errc::config,
        fmt::format("{}: this run had train.accumulate = {}, and the forecast is of {}: step times differ",
                    request.from, recorded->micro_batches, request.settings.train.accumulate));
  const bool other_size = recorded->parameters > 0 && recorded->parameters != size.parameters;
  if (recorded->model != size.name || recorded->batches != request.settings.data.batch || other_size)
    return core::fail(
        core::Errc::config,
        fmt::format("{}: this run was {} ({} parameters) with data.batch = {}, and the forecast is of {} ({}) with {}: "
                    "step times hold for one model and one batch only",
                    request.from, recorded->model, recorded->parameters, fmt::join(recorded->batches, ", "), size.name,
                    size.parameters, fmt::join(request.settings.data.batch, ", ")));
  GivenTimes times{.steps = {}, .source = "recorded in " + request.from};
  for (const auto& steps : recorded->steps) times.steps.push_back(measured(steps));
  return times;
}

core::Result<GivenTimes> times_of_profile(const ForecastRequest& request, const Placing& placing) {
  const auto profile = load_profile(request.from);
  if (!profile) return tl::unexpected(profile.error());
  for (const auto batch : placing.batches)
    if (auto fits = check_profile(*profile, placing, batch / placing.micro_batches, request.from); !fits)
      return tl::unexpected(fits.error());
  return GivenTimes{.steps = {measured(profile->steps_ms, placing.micro_batches)},
                    .source = "measured, in " + request.from};
}

core::Result<GivenTimes> given_times(const ForecastRequest& request, const Placing& placing, const Size& size) {
  if (!request.measured.empty()) {
    GivenTimes times{.steps = {}, .source = "measured now, on this machine"};
    for (const auto& profile : request.measured)
      times.steps.push_back(measured(profile.steps_ms, placing.micro_batches));
    return times;
  }
  if (request.from.empty()) return GivenTimes{};
  std::error_code missing;
  return std::filesystem::is_regular_file(request.from, missing) ? times_of_profile(request, placing)
                                                                 : times_of_run(request, size);
}

struct PlacedRun {
  Cluster cluster;
  std::string step_times;
};

core::Result<PlacedRun> place_all(const ForecastRequest& request, const SimulatedRun& run, const Size& size) {
  Placing placing{.workers = run.workers,
                  .servers = run.servers,
                  .model = size.name,
                  .parameters = size.parameters,
                  .batches = run.leases.batches,
                  .micro_batches = request.settings.train.accumulate,
                  .image_ms = size.image_ms,
                  .placement = placement_of(request.settings)};
  auto given = given_times(request, placing, size);
  if (!given) return tl::unexpected(std::move(given.error()));
  placing.recorded = std::move(given->steps);
  auto cluster = place(request.cluster, placing);
  if (!cluster) return tl::unexpected(std::move(cluster.error()));
  auto source = std::move(given->source);
  if (source.empty() && size.image_ms > 0)
    source = fmt::format("models.{}.image_ms of {}", size.name, request.cluster.origin);
  if (source.empty()) source = source_of_times(request.cluster, cluster->workers.front().kind);
  return PlacedRun{std::move(*cluster), std::move(source)};
}

}  // namespace

core::Result<Forecast> forecast(const ForecastRequest& request) {
  if (request.gradients && (!request.model.empty() || request.steps > 0))
    return core::fail(core::Errc::config,
                      "gradients are of the configuration's model on its data: leave --model and "
                      "--steps out, or --gradients");
  const auto size = size_of_model(request);
  if (!size) return tl::unexpected(size.error());
  const auto run = run_of(request, *size);
  if (!run) return tl::unexpected(run.error());
  const auto placed = place_all(request, *run, *size);
  if (!placed) return tl::unexpected(placed.error());
  const auto* cluster = &placed->cluster;
  auto leases = data::LeaseScheduler::create(run->leases);
  if (!leases) return tl::unexpected(std::move(leases.error()));
  const auto per_run = leases->leases_per_epoch(run->workers) * run->leases.epochs;
  auto notes = experiment::notes_on(request.settings, run->needs, per_run / run->workers);
  std::unique_ptr<Gradients> gradients;
  if (request.gradients) {
    auto made = experiment::build_run_spec(request.settings, true).and_then([&](const experiment::RunSpec& spec) {
      return Gradients::create(spec, *request.gradients, cluster->buckets);
    });
    if (!made) return tl::unexpected(std::move(made.error()));
    gradients = std::move(*made);
  }
  auto result =
      Simulation(
          *run, *cluster, std::move(*leases),
          {.pause = request.pause, .gradients = gradients.get(), .progress = request.progress, .watch = request.watch})
          .run();
  if (!result) return tl::unexpected(std::move(result.error()));
  Forecast forecast{.summary = summary_of(*result, *run),
                    .result = std::move(*result),
                    .cluster = request.cluster.origin,
                    .step_ms = 1e3 * StepTimeModel(*run, *cluster).expected_s(0),
                    .step_times = placed->step_times,
                    .seed = run->seed,
                    .notes = std::move(notes)};
  auto& summary = forecast.summary;
  const auto& settings = request.settings;
  summary.run = settings.run.name;
  summary.strategy = settings.strategy;
  summary.model = size->name;
  summary.dataset = settings.data.name;
  summary.device = fmt::format("{}", fmt::join(settings.devices(), ", "));
  summary.precision = settings.cluster.precision;
  return forecast;
}

}  // namespace troupe::sim
