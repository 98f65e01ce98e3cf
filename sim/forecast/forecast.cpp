#include "sim/forecast/forecast.hpp"

#include <fmt/format.h>

#include "experiment/run_spec.hpp"
#include "sim/cluster/cluster_tables.hpp"
#include "sim/cluster/recorded.hpp"
#include "sim/exchange/gradients.hpp"
#include "sim/simulation.hpp"

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
  return data::open_dataset(data, data::Split::train).map([](const auto& split) { return split->size(); });
}

core::Result<Plan> plan_of(const ForecastRequest& request, const Size& size) {
  const auto& settings = request.settings;
  const auto workers = static_cast<std::uint32_t>(settings.cluster.workers);
  auto strategy = experiment::make_strategy(settings);
  if (!strategy) return tl::unexpected(std::move(strategy.error()));
  auto batches = data::batches_per_worker(settings.data, workers);
  if (!batches) return tl::unexpected(std::move(batches.error()));
  auto samples = training_samples(settings.data, size.epoch_samples);
  if (!samples) return tl::unexpected(std::move(samples.error()));
  Plan plan;
  plan.strategy = std::move(*strategy);
  plan.needs = plan.strategy->needs();
  plan.workers = workers;
  plan.servers = plan.needs.servers ? static_cast<std::uint32_t>(settings.cluster.servers) : 0;
  plan.seed = static_cast<std::uint64_t>(settings.run.seed);
  plan.leases = {.epoch_size = *samples,
                 .epochs = static_cast<std::uint32_t>(settings.run.epochs),
                 .batches = std::move(*batches),
                 .sharing = plan.needs.in_step ? data::Sharing::shares : data::Sharing::on_demand,
                 .drop_tail = settings.data.drop_tail};
  if (request.steps > 0) {
    plan.leases.epochs = 1;
    std::int64_t batch = 0;
    for (const auto each : plan.leases.batches) batch += each;  // at most 65,535 times 10⁹
    if (batch > kMostSamples / request.steps)
      return core::fail(core::Errc::config, fmt::format("{} steps of {} samples, all workers together, are more than a "
                                                        "forecast counts: lower --steps or data.batch",
                                                        request.steps, batch));
    plan.leases.epoch_size = batch * request.steps;
  }
  plan.train = settings.train;
  plan.floats = size.parameters;
  plan.tensors = size.tensors;
  plan.wire_bytes = settings.exchange.wire == "fp32" ? 4 : 2;
  plan.algorithm = exchange::algorithm_of(settings.exchange.algorithm);
  plan.prefetch = settings.data.prefetch;
  plan.slowdown = settings.cluster.slowdown;
  plan.synthetic_step =
      std::chrono::round<Duration>(std::chrono::duration<double, std::milli>(settings.cluster.synthetic_step_ms));
  plan.max_seconds = settings.run.max_seconds;
  plan.target_accuracy = settings.run.target_accuracy;
  return plan;
}

/// The strategy's placement of its servers; empty: not set.
std::string placement_of(const experiment::Settings& settings) {
  constexpr const char* kKey = "strategy.placement";
  if (!experiment::schema().find(kKey, settings.strategy)) return {};
  return std::get<std::string>(settings.config.value(kKey));
}

/// Places the members, with the step times of a recorded run if one is given.
core::Result<Cluster> place_all(const ForecastRequest& request, const Plan& plan, const Size& size) {
  Placing placing{.workers = plan.workers,
                  .servers = plan.servers,
                  .model = request.model.empty() ? size.name : std::string{},
                  .batches = plan.leases.batches,
                  .image_ms = size.image_ms,
                  .placement = placement_of(request.settings)};
  if (request.from.empty()) return place(request.cluster, placing);
  const auto run = load_recorded(request.from);
  if (!run) return tl::unexpected(run.error());
  if (run->model != size.name || run->batches != request.settings.data.batch)
    return core::fail(
        core::Errc::config,
        fmt::format("{}: this run was {} with data.batch = {}, and the forecast is of {} with {}: step times "
                    "are those of a model and a batch",
                    request.from, run->model, fmt::join(run->batches, ", "), size.name,
                    fmt::join(request.settings.data.batch, ", ")));
  for (const auto& steps : run->steps) placing.recorded.push_back(measured(steps));
  return place(request.cluster, placing);
}

}  // namespace

core::Result<Forecast> forecast(const ForecastRequest& request) {
  if (request.gradients && (!request.model.empty() || request.steps > 0))
    return core::fail(core::Errc::config,
                      "gradients are of the configuration's model on its data: leave --model and "
                      "--steps out, or --gradients");
  const auto size = size_of_model(request);
  if (!size) return tl::unexpected(size.error());
  const auto plan = plan_of(request, *size);
  if (!plan) return tl::unexpected(plan.error());
  const auto cluster = place_all(request, *plan, *size);
  if (!cluster) return tl::unexpected(cluster.error());
  auto book = data::LeaseScheduler::create(plan->leases);
  if (!book) return tl::unexpected(std::move(book.error()));
  const auto leases = book->leases_per_epoch(plan->workers) * plan->leases.epochs;
  auto notes = experiment::notes_on(request.settings, plan->needs, leases / plan->workers);
  std::unique_ptr<Gradients> gradients;
  if (request.gradients) {
    auto made = experiment::build_run_spec(request.settings, true).and_then([&](const experiment::RunSpec& spec) {
      return Gradients::create(spec, *request.gradients, cluster->buckets);
    });
    if (!made) return tl::unexpected(std::move(made.error()));
    gradients = std::move(*made);
  }
  auto outcome = Simulation(*plan, *cluster, std::move(*book), {.gradients = gradients.get()}).run();
  if (!outcome) return tl::unexpected(std::move(outcome.error()));
  Forecast forecast{.summary = summary_of(*outcome, *plan),
                    .outcome = std::move(*outcome),
                    .cluster = request.cluster.origin,
                    .seed = plan->seed,
                    .notes = std::move(notes)};
  auto& summary = forecast.summary;
  const auto& settings = request.settings;
  summary.run = settings.run.name;
  summary.strategy = settings.strategy;
  summary.model = size->name;
  summary.dataset = settings.data.name;
  summary.device = settings.cluster.device;
  summary.precision = settings.cluster.precision;
  return forecast;
}

}  // namespace troupe::sim
