#include "apps/commands/dry_run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/backends.hpp"
#include "apps/measured_steps.hpp"
#include "apps/output.hpp"
#include "core/optimizers/optimizers.hpp"
#include "experiment/report/console_text.hpp"
#include "experiment/run_spec.hpp"
#include "experiment/state/accumulation.hpp"
#include "experiment/state/initial_model.hpp"
#include "experiment/state/state_checks.hpp"
#include "nn/layers_config.hpp"
#include "nn/optimizer.hpp"
#include "sim/cluster/placement.hpp"
#include "sim/cluster/recorded.hpp"

namespace troupe::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kWindow = 0.3;  // seconds; three of them

/// The float32 bytes of one worker.
struct Memory {
  std::size_t parameters = 0, gradients = 0, optimizer = 0, strategy = 0, statistics = 0, workspace = 0;
  [[nodiscard]] std::size_t total() const {
    return parameters + gradients + optimizer + strategy + statistics + workspace;
  }
};

/// Workers with the same batch, threads and device.
struct WorkerKind {
  std::vector<std::uint32_t> workers;
  std::int64_t batch = 0;
  int threads = 1;
  std::string device;
  Memory memory{};
  double step_s = 0;  // with slowdown and synthetic_step_ms of its first worker
};

struct Steps {
  std::int64_t samples = 0;  // of an epoch
  std::uint64_t per_epoch = 0;
  std::uint64_t total = 0;
};

struct Time {
  double seconds = 0;
  bool limited = false;  // by run.max_seconds
  std::string source;
};

struct Report {
  experiment::RunSpec spec;
  std::vector<WorkerKind> kinds;
  std::size_t servers_bytes = 0;
  Steps steps;
  Time time;
};

std::size_t bytes(core::Span vector) { return vector.size() * sizeof(float); }

core::Result<std::vector<WorkerKind>> kinds_of(const experiment::RunSpec& spec, nn::Backend& backend) {
  const auto& settings = *spec.settings;
  const auto optimizer = static_cast<std::size_t>(core::state_slots(nn::optimizer_kind(settings.train)));
  std::vector<WorkerKind> kinds;
  core::HostAllocator memory;
  for (std::uint32_t worker = 0; worker < spec.workers; ++worker) {
    const auto batch = settings.batch(worker);
    const auto threads = settings.threads(worker);
    const auto known = std::ranges::find_if(kinds, [&](const WorkerKind& kind) {
      return kind.batch == batch && kind.threads == threads && kind.device == settings.device(worker);
    });
    if (known != kinds.end()) {
      known->workers.push_back(worker);
      continue;
    }
    auto options = settings.compile_options(worker);
    options.arenas = &memory;
    const auto replica = experiment::compile_worker(backend, *spec.graph, options, settings.train.accumulate);
    if (!replica) return tl::unexpected(replica.error());
    const auto arena = bytes((*replica)->parameters());
    kinds.push_back({.workers = {worker},
                     .batch = batch,
                     .threads = threads,
                     .device = settings.device(worker),
                     .memory = {.parameters = arena,
                                .gradients = bytes((*replica)->gradients()),
                                .optimizer = optimizer * arena,
                                .strategy = spec.needs.worker_slots.size() * arena,
                                .statistics = bytes((*replica)->statistics()),
                                .workspace = (*replica)->workspace_bytes()}});
  }
  return kinds;
}

core::Result<Steps> steps_of(const experiment::RunSpec& spec) {
  const auto leases = experiment::planned_leases(spec);
  if (!leases) return tl::unexpected(leases.error());
  const auto& data = spec.settings->data;
  const auto published = data::published_samples(data, data::Split::train);
  const auto per_epoch = (*leases)->leases_per_epoch(spec.workers);
  return Steps{.samples = spec.source.train ? spec.source.train->size() : published.value_or(0),
               .per_epoch = per_epoch,
               .total = per_epoch * static_cast<std::uint64_t>(spec.settings->run.limited_epochs())};
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// How many times as long a step takes because the workers share the cores, of which `at_once` workers have all they need.
double shared_cores_factor(const experiment::Settings& settings, std::size_t at_once) {
  std::size_t threads = 0, most = 1;
  for (std::size_t worker = 0; worker < static_cast<std::size_t>(settings.cluster.workers); ++worker) {
    const auto own = static_cast<std::size_t>(settings.threads(worker));
    threads += own;
    most = std::max(most, own);
  }
  return std::max(1.0, static_cast<double>(threads) / static_cast<double>(std::max(cores(), at_once * most)));
}

/// Milliseconds of a step by worker, as the workers compute together, and where they come from.
core::Result<std::vector<double>> step_times(const experiment::RunSpec& spec, const DryRun& options,
                                             std::string& source) {
  const auto& settings = *spec.settings;
  const auto parts = static_cast<double>(settings.train.accumulate);
  std::vector<double> times;
  if (options.profile.empty()) {
    const auto measured = measure_steps(settings, *spec.graph, kWindow, true);
    if (!measured) return tl::unexpected(measured.error());
    const double shared = shared_cores_factor(settings, measured->at_once);
    for (const auto& bench : measured->workers) times.push_back(parts * shared * mean(bench.steps_ms));
    source = fmt::format("measured now on this machine, {} at once",
                         measured->at_once == 1 ? "one replica" : fmt::format("{} replicas", measured->at_once));
    return times;
  }
  const auto profile = sim::load_profile(options.profile);
  if (!profile) return tl::unexpected(profile.error());
  const sim::Placing run{.model = spec.graph->name(),
                         .parameters = static_cast<std::uint64_t>(spec.graph->parameter_count())};
  for (const auto batch : settings.data.batch)
    if (auto fits = sim::check_profile(*profile, run, batch / settings.train.accumulate, options.profile); !fits)
      return tl::unexpected(fits.error());
  source = "of the profile " + options.profile;
  return std::vector{parts * shared_cores_factor(settings, 1) * mean(profile->steps_ms)};
}

/// Computing alone: in step all wait for the slowest worker that a step needs, else each takes as many batches as it can.
core::Result<Time> time_of(const experiment::RunSpec& spec, const DryRun& options, const Steps& steps,
                           std::vector<WorkerKind>& kinds) {
  Time time;
  const auto times = step_times(spec, options, time.source);
  if (!times) return tl::unexpected(times.error());
  const auto& settings = *spec.settings;
  std::vector<double> steps_s;
  double round_samples = 0;  // of one step of all workers
  double samples_per_second = 0;
  for (auto& kind : kinds) {
    for (const auto worker : kind.workers) {
      const double own = std::max(times->at(worker % times->size()), settings.cluster.synthetic_step_ms);
      const double step_s = 1e-3 * own * settings.slowdown(worker);
      if (worker == kind.workers.front()) kind.step_s = step_s;
      steps_s.push_back(step_s);
      round_samples += static_cast<double>(kind.batch);
      samples_per_second += static_cast<double>(kind.batch) / step_s;
    }
  }
  std::ranges::sort(steps_s);
  const auto slowest = steps_s.at(steps_s.size() - 1 - spec.needs.backup);
  const auto rounds = static_cast<double>(steps.total) / spec.workers;
  time.seconds = spec.needs.in_step ? rounds * slowest : rounds * round_samples / samples_per_second;
  const auto limit = settings.run.max_seconds;
  time.limited = limit > 0 && time.seconds > limit;
  if (time.limited) time.seconds = limit;
  return time;
}

core::Result<Report> report_on(const experiment::Settings& settings, nn::Backend& backend, const DryRun& options) {
  const bool open = !data::published_samples(settings.data, data::Split::train).has_value();
  auto spec = experiment::build_run_spec(settings, open);
  if (!spec) return tl::unexpected(std::move(spec.error()));
  if (auto checked = experiment::check_state(*spec); !checked) return tl::unexpected(checked.error());
  if (auto initial = experiment::initial_model(*spec); !initial) return tl::unexpected(std::move(initial.error()));
  const auto steps = steps_of(*spec);
  if (!steps) return tl::unexpected(steps.error());
  auto kinds = kinds_of(*spec, backend);
  if (!kinds) return tl::unexpected(std::move(kinds.error()));
  auto time = time_of(*spec, options, *steps, *kinds);
  if (!time) return tl::unexpected(std::move(time.error()));
  const auto arena = kinds->front().memory.parameters;
  const auto vectors = spec->servers == 0 ? 0U : 1U + spec->needs.server_states;
  return Report{std::move(*spec), std::move(*kinds), vectors * arena, *steps, std::move(*time)};
}

/// One layer of the table. `activations`: of worker 0's micro-batch, forward, as the model defines them.
struct LayerRow {
  std::string name{}, type{}, output{};
  std::int64_t parameters = 0;
  double flops = 0;  // forward and backward, of one sample
  std::size_t activations = 0;
};

std::vector<LayerRow> rows_of(const nn::Graph& graph, std::int64_t batch) {
  std::vector<LayerRow> rows;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto& node = graph.nodes()[i];
    LayerRow row{
        .name = node.name, .type = std::string(nn::layer_type(node.layer)), .output = nn::to_string(node.output)};
    for (const auto& parameter : graph.parameters())
      if (parameter.node == static_cast<int>(i)) row.parameters += parameter.size();
    row.flops = graph.training_flops(static_cast<int>(i));
    row.activations = static_cast<std::size_t>(batch * node.output.size()) * sizeof(float);
    rows.push_back(std::move(row));
  }
  return rows;
}

/// 999, 1.23 k, 45.6 M, 789 G: three significant digits.
std::string with_prefix(double value, std::string_view unit) {
  static constexpr std::array<std::string_view, 5> kPrefixes{"", "k", "M", "G", "T"};
  std::size_t power = 0;
  for (; value >= 999.5 && power + 1 < kPrefixes.size(); ++power) value /= 1000;
  const int decimals = power == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  const auto suffix = fmt::format("{}{}", kPrefixes[power], unit);
  return fmt::format("{:.{}f}{}{}", value, decimals, suffix.empty() ? "" : " ", suffix);
}

std::string in_bytes(std::size_t count) { return with_prefix(static_cast<double>(count), "B"); }

std::string table(const std::vector<LayerRow>& rows) {
  using Cells = std::array<std::string, 6>;
  std::vector<Cells> lines{{"layer", "type", "output", "parameters", "flops", "memory"}};
  LayerRow sum{.name = "all"};
  const auto add = [&](const LayerRow& row) {
    lines.push_back({row.name, row.type, row.output, report::grouped(static_cast<std::uint64_t>(row.parameters)),
                     with_prefix(row.flops, ""), in_bytes(row.activations)});
  };
  for (const auto& row : rows) {
    add(row);
    sum.parameters += row.parameters;
    sum.flops += row.flops;
    sum.activations += row.activations;
  }
  add(sum);
  std::array<std::size_t, 6> widths{};
  for (const auto& line : lines)
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  std::string text;
  for (const auto& c : lines)
    text += fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>{}}  {:>{}}  {:>{}}\n", c[0], widths[0], c[1], widths[1], c[2],
                        widths[2], c[3], widths[3], c[4], widths[4], c[5], widths[5]);
  return text;
}

std::string workers_of(const WorkerKind& kind, const experiment::RunSpec& spec) {
  if (kind.workers.size() == spec.workers) return "a worker";
  if (kind.workers.size() == 1) return fmt::format("worker {}", kind.workers.front());
  return fmt::format("each of {} workers like worker {}", kind.workers.size(), kind.workers.front());
}

std::string to_text(const Report& r) {
  const auto& settings = *r.spec.settings;
  auto text = fmt::format("{} on {}, {}: {}, {}\n\n", r.spec.graph->name(), settings.data.name, settings.strategy,
                          report::counted(r.spec.workers, "worker"), report::counted(r.spec.servers, "server"));
  if (const auto devices = devices_text(settings); !devices.empty()) text += devices + "\n\n";
  const auto parts = settings.train.accumulate;
  text += table(rows_of(*r.spec.graph, r.kinds.front().batch / parts));
  text += fmt::format("flops: forward and backward, of one sample\nmemory: the outputs of a {} of {}\n",
                      parts > 1 ? "micro-batch" : "batch", r.kinds.front().batch / parts);
  for (const auto& kind : r.kinds) {
    const auto& m = kind.memory;
    text += fmt::format("\nmemory of {}, with batch {}:\n", workers_of(kind, r.spec), kind.batch);
    for (const auto& [what, size] : {std::pair{"parameters", m.parameters},
                                     {"gradients", m.gradients},
                                     {"optimizer state", m.optimizer},
                                     {"strategy's vectors", m.strategy},
                                     {"running statistics", m.statistics},
                                     {"activations, workspace", m.workspace},
                                     {"together", m.total()}})
      if (size > 0) text += fmt::format("  {:<22}  {:>8}\n", what, in_bytes(size));
  }
  if (r.servers_bytes > 0)
    text +=
        fmt::format("memory of the {}: {}\n", r.spec.servers == 1 ? "server" : "servers", in_bytes(r.servers_bytes));
  text += fmt::format("\n{} of {}\n{} an epoch over all workers, {} in all\n",
                      report::counted(static_cast<std::uint64_t>(settings.run.limited_epochs()), "epoch"),
                      report::counted(static_cast<std::uint64_t>(r.steps.samples), "sample"),
                      report::counted(r.steps.per_epoch, "step"), report::grouped(r.steps.total));
  text += fmt::format("forecast: {} of computing{}\n", report::clock_time(r.time.seconds),
                      r.time.limited ? ", the limit that run.max_seconds sets" : "");
  for (const auto& kind : r.kinds)
    text += fmt::format("  a step of {}: {:.2f} ms\n", workers_of(kind, r.spec), 1e3 * kind.step_s);
  text += fmt::format("  step times {};\n  exchanges, loading and evaluation come on top\n", r.time.source);
  return text;
}

Json to_json(const Report& r) {
  const auto& settings = *r.spec.settings;
  const auto& graph = *r.spec.graph;
  Json json{{"model", graph.name()},
            {"dataset", settings.data.name},
            {"strategy", settings.strategy},
            {"workers", r.spec.workers},
            {"servers", r.spec.servers},
            {"layers", Json::array()},
            {"parameters", graph.parameter_count()},
            {"flops", graph.training_flops()},
            {"memory", Json::array()},
            {"servers_bytes", r.servers_bytes},
            {"samples", r.steps.samples},
            {"epochs", settings.run.limited_epochs()},
            {"steps_per_epoch", r.steps.per_epoch},
            {"steps", r.steps.total},
            {"forecast_s", r.time.seconds},
            {"step_times", r.time.source}};
  for (const auto& row : rows_of(graph, r.kinds.front().batch / settings.train.accumulate))
    json["layers"].push_back({{"name", row.name},
                              {"type", row.type},
                              {"output", row.output},
                              {"parameters", row.parameters},
                              {"flops", row.flops},
                              {"activation_bytes", row.activations}});
  for (const auto& kind : r.kinds)
    json["memory"].push_back({{"workers", kind.workers},
                              {"batch", kind.batch},
                              {"threads", kind.threads},
                              {"parameters", kind.memory.parameters},
                              {"gradients", kind.memory.gradients},
                              {"optimizer", kind.memory.optimizer},
                              {"strategy", kind.memory.strategy},
                              {"statistics", kind.memory.statistics},
                              {"workspace", kind.memory.workspace},
                              {"total", kind.memory.total()},
                              {"step_ms", 1e3 * kind.step_s}});
  return json;
}

}  // namespace

core::Result<void> dry_run(const experiment::Settings& settings, nn::Backend& backend, const DryRun& options) {
  const auto report = report_on(settings, backend, options);
  if (!report) return tl::unexpected(report.error());
  for (const auto& note : experiment::notes_on(report->spec)) print_note(note);
  return print(options.json ? to_json(*report).dump() + "\n" : to_text(*report));
}

}  // namespace troupe::apps
