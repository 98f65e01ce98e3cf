#include "experiment/run_spec.hpp"

#include <algorithm>
#include <numeric>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text/plural.hpp"
#include "nn/optimizer.hpp"
#include "nn/program/linear_chain.hpp"
#include "nn/zoo/models.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::experiment {

namespace {

nn::Shape to_nn(const data::ImageShape& shape) { return {shape.channels, shape.height, shape.width}; }

core::Result<std::shared_ptr<data::LeaseScheduler>> cut_leases(const RunSpec& spec, std::int64_t samples) {
  auto batches = data::batches_per_worker(spec.settings->data, spec.workers);
  if (!batches) return tl::unexpected(batches.error());
  auto leases =
      data::LeaseScheduler::create({.epoch_size = samples,
                                    .epochs = static_cast<std::uint32_t>(spec.settings->run.epochs),
                                    .batches = std::move(*batches),
                                    .sharing = spec.needs.in_step ? data::Sharing::equal : data::Sharing::on_demand,
                                    .drop_tail = spec.settings->data.drop_tail});
  if (!leases) return tl::unexpected(leases.error());
  return std::make_shared<data::LeaseScheduler>(std::move(*leases));
}

/// Settings without effect.
std::vector<Note> unused(const Settings& settings, const strategies::Needs& needs) {
  std::vector<Note> notes;
  for (const auto& key : settings.config.unused())
    notes.push_back({Note::Level::info, unused_text(key, settings.strategy)});
  if (!settings.cluster.deterministic)
    notes.push_back(
        {Note::Level::info, settings.backends() == std::vector<std::string_view>{"cpu"}
                                ? "cluster.deterministic = false changes nothing on a CPU"
                                : "cluster.deterministic = false: a GPU may compute other bits each time; a "
                                  "replay and a resume cannot promise the same numbers"});
  if (settings.exchange.wire != "fp32" && !needs.rounds)
    notes.push_back({Note::Level::info,
                     fmt::format("exchange.wire = \"{}\" rounds nothing of strategy {}: parameters travel in float32",
                                 settings.exchange.wire, settings.strategy)});
  return notes;
}

/// Whether a model whose neurons are to be spread over ranks can be computed so.
core::Result<void> check_parallel(const Settings& settings, const nn::Graph& graph) {
  if (settings.model.parallel == "none") return {};
  const auto refuse = [&](const char* key, std::string_view why) {
    return core::fail(core::Errc::config, fmt::format("{}: {}", settings.config.where(key), why));
  };
  if (settings.precision() != nn::Precision::fp32)
    return refuse("cluster.precision",
                  "cluster.precision: model.parallel = \"neurons\" computes in float32 only: use \"fp32\"");
  if (settings.train.recompute)
    return refuse("train.recompute",
                  "train.recompute: model.parallel = \"neurons\" cannot compute activations again: use false");
  if (const auto chain = nn::linear_chain(graph); !chain) return refuse("model.parallel", chain.error().message);
  return {};
}

/// A batch that has samples several times over is computed as any other, and says nothing more than a small one.
std::optional<Note> large_batch(const Settings& settings, std::int64_t samples) {
  const auto batch = std::ranges::max(settings.data.batch);
  if (batch <= samples || samples == 0) return std::nullopt;
  return Note{Note::Level::warning,
              fmt::format("{}: data.batch = {} is more than the {}: a step has each of them {:.3g} times; set "
                          "data.batch to their number or less",
                          settings.config.where("data.batch"), batch,
                          core::counted(static_cast<std::uint64_t>(samples), "training sample"),
                          static_cast<double>(batch) / static_cast<double>(samples))};
}

}  // namespace

std::string unused_text(const std::string& key, const std::string& strategy) {
  return key + " is not used by strategy " + strategy;
}

std::vector<Note> notes_on(const Settings& settings, const strategies::Needs& needs, std::uint64_t steps_per_worker) {
  auto notes = unused(settings, needs);
  for (auto& line : strategies::warnings(settings.config, needs, steps_per_worker))
    notes.push_back({Note::Level::warning, std::move(line)});
  return notes;
}

Summary summary_of(const Settings& settings, const nn::Graph& graph, std::uint32_t workers, std::uint32_t servers,
                   const std::string& directory) {
  Summary summary;
  summary.run = directory;
  summary.strategy = settings.strategy;
  summary.model = graph.name();
  summary.dataset = settings.data.name;
  summary.device = fmt::format("{}", fmt::join(settings.devices(), ", "));
  summary.precision = settings.cluster.precision;
  summary.workers = workers;
  summary.servers = servers;
  return summary;
}

std::vector<Note> notes_on(const RunSpec& spec) {
  const auto& settings = *spec.settings;
  const auto planned = planned_leases(spec);
  if (!planned || !*planned) return unused(settings, spec.needs);  // check_leases() reports the error
  const auto& leases = **planned;
  const auto per_run = leases.leases_per_epoch(spec.workers) * static_cast<std::uint64_t>(settings.run.epochs);
  auto notes = notes_on(settings, spec.needs, per_run / spec.workers);
  if (auto large = large_batch(settings, leases.accounts().size)) notes.push_back(std::move(*large));
  return notes;
}

std::optional<Note> crowding(const Settings& settings, std::span<const std::uint32_t> workers, unsigned cores,
                             std::string_view where) {
  std::uint64_t threads = 0;
  for (const auto worker : workers) threads += static_cast<std::uint64_t>(settings.threads(worker));
  if (threads <= cores || settings.cluster.synthetic_step_ms > 0) return std::nullopt;
  const auto workers_text = core::counted(workers.size(), "worker");
  return Note{Note::Level::warning,
              fmt::format("{} has {} for {}: they slow each other down, and times and waits show that; lower "
                          "cluster.workers or cluster.threads_per_worker",
                          where, core::counted(cores, "core"),
                          threads == workers.size()
                              ? workers_text
                              : fmt::format("{} with {}", workers_text, core::counted(threads, "thread")))};
}

std::optional<Note> crowding_here(const Settings& settings) {
  std::vector<std::uint32_t> workers(static_cast<std::size_t>(settings.cluster.workers));
  std::iota(workers.begin(), workers.end(), 0U);
  return crowding(settings, workers, std::max(1U, std::thread::hardware_concurrency()), "this machine");
}

core::Result<void> check_leases(const RunSpec& spec) {
  return planned_leases(spec).map([](const auto&) {});
}

core::Result<std::shared_ptr<const data::LeaseScheduler>> planned_leases(const RunSpec& spec) {
  if (spec.leases) return spec.leases;
  const auto samples = data::published_samples(spec.settings->data, data::Split::train);
  if (!samples) return std::shared_ptr<const data::LeaseScheduler>();
  const auto& settings = *spec.settings;
  if (*samples == 0 && settings.data.validation != "none")
    return core::fail(core::Errc::config,
                      fmt::format("{}: data.validation = \"{}\" leaves no sample to train with: hold fewer out",
                                  settings.config.where("data.validation"), settings.data.validation));
  return cut_leases(spec, *samples).map([](auto leases) {
    return std::shared_ptr<const data::LeaseScheduler>(std::move(leases));
  });
}

core::Result<std::shared_ptr<const strategies::Strategy>> make_strategy(const Settings& settings) {
  const auto workers = static_cast<std::uint32_t>(settings.cluster.workers);
  auto step = nn::optimizer_step(settings.train, 0, static_cast<double>(std::max<std::int64_t>(settings.run.epochs, 1)),
                                 static_cast<int>(workers));
  step.momentum = static_cast<float>(settings.train.momentum);  // for a server's optimizer, independent of the workers'
  auto strategy = strategies::make(settings.config, {.workers = workers,
                                                     .servers = static_cast<std::uint32_t>(settings.cluster.servers),
                                                     .seed = static_cast<std::uint64_t>(settings.run.seed),
                                                     .optimizer = step,
                                                     .epsilon_inside = settings.train.rmsprop_epsilon == "inside",
                                                     .ema = settings.train.ema});
  if (!strategy) return tl::unexpected(std::move(strategy.error()));
  return std::shared_ptr<const strategies::Strategy>(std::move(*strategy));
}

core::Result<RunSpec> build_run_spec(const Settings& settings, bool open_data) {
  RunSpec spec;
  spec.settings = std::make_shared<const Settings>(settings);
  spec.workers = static_cast<std::uint32_t>(settings.cluster.workers);
  auto strategy = make_strategy(settings);
  if (!strategy) return tl::unexpected(std::move(strategy.error()));
  spec.strategy = std::move(*strategy);
  spec.needs = spec.strategy->needs();
  spec.servers = spec.needs.servers ? static_cast<std::uint32_t>(settings.cluster.servers) : 0;

  auto published = data::image_facts(settings.data);
  if (!published) return tl::unexpected(published.error());
  auto facts = *published;
  if (open_data || !facts) {
    auto source = data::open_source(settings.data, static_cast<std::uint64_t>(settings.run.seed));
    if (!source) return tl::unexpected(source.error());
    spec.source = std::move(*source);
    facts = data::ImageFacts{spec.source.train->image_shape(), spec.source.train->classes()};
  }
  auto graph = nn::build_model(settings.model, to_nn(facts->shape), facts->classes,
                               [&](const std::string& key) { return settings.config.where(key); });
  if (!graph) return tl::unexpected(graph.error());
  spec.graph = std::make_shared<const nn::Graph>(std::move(*graph));
  if (settings.train.label_smoothing > 0 && spec.graph->loss() != nn::Loss::softmax_cross_entropy)
    return core::fail(core::Errc::config,
                      fmt::format("{}: train.label_smoothing is for cross-entropy, and the model's loss is the squared "
                                  "error: use 0, or model.loss = \"softmax_cross_entropy\"",
                                  settings.config.where("train.label_smoothing")));
  if (auto fits = check_parallel(settings, *spec.graph); !fits) return tl::unexpected(std::move(fits.error()));

  if (spec.source.train) {
    auto leases = cut_leases(spec, spec.source.train->size());
    if (!leases) return tl::unexpected(leases.error());
    spec.leases = std::move(*leases);
  }
  return spec;
}

}  // namespace troupe::experiment
