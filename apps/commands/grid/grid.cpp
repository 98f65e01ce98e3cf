#include "apps/commands/grid/grid.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "actors/deployment/nodes.hpp"
#include "actors/run/run.hpp"
#include "apps/arguments/checks.hpp"
#include "apps/arguments/config.hpp"
#include "apps/arguments/directory_file.hpp"
#include "apps/arguments/network.hpp"
#include "apps/backends.hpp"
#include "apps/command.hpp"
#include "apps/grid/forecast.hpp"
#include "apps/grid/pool/children.hpp"
#include "apps/grid/pool/run_grid.hpp"
#include "apps/grid/results.hpp"
#include "apps/interrupt.hpp"
#include "apps/output.hpp"
#include "core/text/nearest.hpp"
#include "core/text/plural.hpp"
#include "cpu/step_bench.hpp"
#include "experiment/run_spec.hpp"

namespace troupe::apps {
namespace {

using Json = nlohmann::ordered_json;

/// Expected seconds of a run, from a short measurement of one worker's step; each kind of step is measured once. 0: unknown. The first
/// completed runs correct for the rest (exchanges, waiting, start-up).
class Probe {
 public:
  explicit Probe(std::size_t jobs)
      : jobs_(static_cast<double>(jobs)), cores_(std::max(std::thread::hardware_concurrency(), 1u)) {}

  double seconds(const experiment::Settings& settings) {
    const auto samples = data::published_samples(settings.data, data::Split::train);
    const auto spec =
        samples ? experiment::build_run_spec(settings, false) : core::fail(core::Errc::data, "size not known");
    if (!spec) return 0;
    if (settings.devices() != std::vector<std::string>{"cpu"})
      return 0;  // a probe may take minutes there: engines are measured first
    const auto threads = settings.threads(0);
    const double rate =
        images_per_s(*spec->graph, settings.batch(0) / settings.train.accumulate, settings.precision(), threads);
    if (!(rate > 0)) return 0;
    // Workers share the cores; synthetic step times and slowdown are sleeps, not computation.
    const auto batch = static_cast<double>(settings.batch(0));
    const double step_s = std::max(batch / rate, settings.cluster.synthetic_step_ms / 1000);
    const double total = std::min(batch / step_s * unhindered_workers(settings, spec->needs.in_step),
                                  rate * std::max(cores_ / (threads * jobs_), 1.0 / jobs_));
    constexpr double kForwardShare = 1.0 / 3;  // of a training step
    const double tests =
        kForwardShare * static_cast<double>(data::published_samples(settings.data, data::Split::test).value_or(0));
    constexpr double kStart_s = 0.5;  // start of the process, and opening the data
    return kStart_s +
           static_cast<double>(settings.run.limited_epochs()) * (static_cast<double>(*samples) / total + tests / rate);
  }

 private:
  /// The equivalent number of workers at full speed: in step, all workers run at the speed of the slowest.
  static double unhindered_workers(const experiment::Settings& settings, bool in_step) {
    const auto workers = static_cast<std::size_t>(settings.cluster.workers);
    double sum = 0, slowest = 1;
    for (std::size_t worker = 0; worker < workers; ++worker) {
      sum += 1 / settings.slowdown(worker);
      slowest = std::max(slowest, settings.slowdown(worker));
    }
    return in_step ? static_cast<double>(workers) / slowest : sum;
  }

  double images_per_s(const nn::Graph& graph, std::int64_t batch, nn::Precision precision, int threads) {
    const auto key = fmt::format("{} {} {} {} {}", graph.name(), graph.training_flops(), batch,
                                 static_cast<int>(precision), threads);
    auto [entry, is_new] = rates_.try_emplace(key, 0.0);
    constexpr double kWindow_s = 0.05;
    if (is_new && rates_.size() <= kMostProbes)
      if (const auto bench = cpu::run_step_bench(
              graph, {.compile = {.batch = batch, .precision = precision, .threads = threads, .measure = false},
                      .seconds = kWindow_s}))
        entry->second = bench->images_per_s;
    return entry->second;
  }

  static constexpr std::size_t kMostProbes = 12;  // of 0.3 s each
  double jobs_;
  double cores_;
  std::map<std::string, double> rates_;
};

std::string settings_text(const grid::GridRun& run, const grid::RunStatus& run_status) {
  return run_status.status == grid::Status::waiting ? fmt::format("  {}\n", run.name)
                                                    : fmt::format("  {}  ({})\n", run.name, name(run_status.status));
}

/// A warning if the runs at once have more threads than this machine has cores.
std::optional<std::string> crowding(const grid::ResolvedGrid& grid, std::size_t jobs) {
  std::uint64_t most = 0;
  for (const auto& run : grid.runs) {
    std::uint64_t threads = 0;
    for (std::size_t w = 0; w < static_cast<std::size_t>(run.settings.cluster.workers); ++w)
      threads += static_cast<std::uint64_t>(run.settings.threads(w));
    if (!(run.settings.cluster.synthetic_step_ms > 0)) most = std::max(most, threads * jobs);
  }
  const std::uint64_t cores = std::max(1U, std::thread::hardware_concurrency());
  if (most <= cores) return std::nullopt;
  return fmt::format(
      "this machine has {} for up to {} of workers at once: they slow each other down; lower "
      "--jobs or cluster.workers",
      core::counted(cores, "core"), core::counted(most, "thread"));
}

bool has_result(const grid::RunStatus& run) {
  return run.status == grid::Status::done || run.status == grid::Status::diverged;
}

/// The number of runs that have a result.
std::size_t ended(const std::vector<grid::RunStatus>& statuses) {
  return static_cast<std::size_t>(std::ranges::count_if(statuses, has_result));
}

std::vector<std::size_t> runs_to_do(const std::vector<grid::RunStatus>& statuses) {
  std::vector<std::size_t> to_do;
  for (std::size_t i = 0; i < statuses.size(); ++i)
    if (!has_result(statuses[i])) to_do.push_back(i);
  return to_do;
}

std::string announcement(const grid::ResolvedGrid& grid, const grid::StatusIndex& status_index,
                         std::optional<double> forecast_s) {
  auto text = fmt::format("{}: {} in {}", grid.file.path, core::counted(grid.runs.size(), "run"), grid.directory);
  if (const auto done = ended(status_index.statuses); done > 0) text += fmt::format(", {} of them done before", done);
  if (ended(status_index.statuses) < grid.runs.size())
    text += fmt::format("; forecast: {}", grid::forecast_text(forecast_s));
  if (grid.merged > 0)
    text += fmt::format("\n{} left out: other runs have the same settings (keys that their strategy does not read)",
                        core::counted(grid.merged, "combination"));
  if (!status_index.foreign.empty())
    text += fmt::format("\n{} in that directory {}", core::counted(status_index.foreign.size(), "run"),
                        core::noun(status_index.foreign.size(), "is not of this grid and stays as it is",
                                   "are not of this grid and stay as they are"));
  return text;
}

Json runs_json(const grid::ResolvedGrid& grid, const std::vector<grid::RunStatus>& statuses) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < grid.runs.size(); ++i)
    runs.push_back(to_json(grid.runs[i], grid.file.bases[grid.runs[i].combination.base], statuses[i]));
  return runs;
}

Json head(const grid::ResolvedGrid& grid, const std::vector<grid::RunStatus>& statuses) {
  const auto count = [&](grid::Status status) {
    return std::ranges::count(statuses, status, &grid::RunStatus::status);
  };
  return {{"grid", grid.file.path},
          {"directory", grid.directory},
          {"varied", grid.varied},
          {"runs", grid.runs.size()},
          {"done", count(grid::Status::done)},
          {"diverged", count(grid::Status::diverged)},
          {"failed", count(grid::Status::failed)}};
}

core::Result<void> print_dry_run(const GridArguments& arguments, const grid::ResolvedGrid& grid,
                                 const grid::StatusIndex& status_index, std::optional<double> forecast_s) {
  if (arguments.json) {
    auto json = head(grid, status_index.statuses);
    json["forecast_s"] = forecast_s ? Json(*forecast_s) : Json(nullptr);
    json["results"] = runs_json(grid, status_index.statuses);
    return print(grid::one_line(json));
  }
  auto text = announcement(grid, status_index, forecast_s) + "\n";
  for (std::size_t i = 0; i < grid.runs.size(); ++i) text += settings_text(grid.runs[i], status_index.statuses[i]);
  return print(text);
}

/// The result of the grid: a diverged run is a result, a failed run is an error.
core::Result<void> verdict(const grid::ResolvedGrid& grid, const grid::GridEnd& end) {
  if (end.interrupted)
    return core::fail(core::Errc::interrupted,
                      fmt::format("interrupted with {} of {} runs done; the same command goes on", ended(end.statuses),
                                  grid.runs.size()));
  const auto failed = std::ranges::find(end.statuses, grid::Status::failed, &grid::RunStatus::status);
  if (failed == end.statuses.end()) return {};
  const auto& run = grid.runs[static_cast<std::size_t>(failed - end.statuses.begin())];
  return core::fail(grid::errc_of(failed->exit_code),
                    fmt::format("{} of {} runs failed, the first of them {}: {}",
                                std::ranges::count(end.statuses, grid::Status::failed, &grid::RunStatus::status),
                                grid.runs.size(), run.name, failed->error));
}

/// What orders the table of a grid.
constexpr const char* kUsualSort = "test.accuracy";

core::Result<void> print_results(const GridArguments& arguments, const grid::ResolvedGrid& grid,
                                 const grid::GridEnd& end) {
  if (!arguments.json) return print(grid::table(grid, end.statuses, arguments.sort.value_or(kUsualSort)));
  auto json = head(grid, end.statuses);
  json["interrupted"] = end.interrupted;
  json["results"] = runs_json(grid, end.statuses);
  return print(grid::one_line(json));
}

core::Result<void> run_grid_command(const GridArguments& arguments) {
  auto file = grid::load(arguments.file, experiment::schema());
  if (!file) return tl::unexpected(std::move(file.error()));
  const auto metrics = grid::metric_names();
  if (arguments.sort && std::ranges::find(metrics, *arguments.sort) == metrics.end())
    return core::fail(core::Errc::usage, fmt::format("--sort: no summary has \"{}\"{}", *arguments.sort,
                                                     core::nearest_hint(*arguments.sort, metrics, core::Quotes::no)));
  Interrupt interrupt;  // before the threads of a line of progress and of the probe
  interrupt.nothing_to_save(true);
  if (file->sweep) return run_sweep_command(arguments, std::move(*file), interrupt);
  auto pool = pool_options(arguments);
  if (!pool) return tl::unexpected(std::move(pool.error()));
  std::optional<ProgressLine> checking;
  checking.emplace("checking the runs", checking_mode(arguments));
  const auto grid = grid::resolve(std::move(*file), arguments.overrides, run_check());
  if (!grid) return tl::unexpected(grid.error());
  const auto status_index = grid::read_status_index(*grid);
  if (!status_index) return tl::unexpected(status_index.error());

  grid::GridOptions options{.pool = std::move(*pool), .estimates_s = {}};
  const auto at_once = options.pool.slots.size();
  Probe probe(at_once);
  checking->begin("measuring for the forecast");
  for (const auto& run : grid->runs)  // nodes may be faster or slower than this machine: their first runs tell
    options.estimates_s.push_back(arguments.nodes ? 0 : probe.seconds(run.settings));
  checking.reset();
  const auto forecast_s = grid::Forecast(options.estimates_s, at_once).left({}, runs_to_do(status_index->statuses));
  if (arguments.dry_run) return print_dry_run(arguments, *grid, *status_index, forecast_s);

  write_directory_file(arguments.directory_file, grid->directory);
  grid::Progress progress(progress_mode(arguments), stderr);
  progress.line(announcement(*grid, *status_index, forecast_s));
  if (const auto crowded = crowding(*grid, at_once); crowded && !arguments.nodes) progress.line("warning: " + *crowded);
  const SignalsForRuns signals(interrupt, options.pool);
  const auto end = grid::run_grid(*grid, options, progress, interrupt.token());
  if (!end) return tl::unexpected(end.error());

  const auto printed = print_results(arguments, *grid, *end);
  if (auto judged = verdict(*grid, *end); !judged) return judged;
  return printed;
}

Action declare_grid(CLI::App& app) {
  const auto arguments = std::make_shared<GridArguments>();
  app.add_option(
         "FILE", arguments->file,
         "grid file (TOML): base, [grid], [[zip]], [only.<strategy>], seeds, [[exclude]]; with [sweep] its settings "
         "are searched")
      ->required();
  app.add_option("--jobs", arguments->jobs, "runs at once")->check(whole_between(1, 1024))->capture_default_str();
  app.add_option("--nodes", arguments->nodes,
                 "train on these nodes (`troupe node`), a run on each; a run whose node is lost goes on on another one")
      ->type_name("HOST:PORT,…")
      ->excludes("--jobs");
  app.add_option("--nodes-per-run", arguments->nodes_per_run, "with --nodes: so many of them train a run together")
      ->type_name("N")
      ->check(whole_between(1, 1024))
      ->needs("--nodes");
  add_tls(app, arguments->tls);
  add_set(app, arguments->overrides);
  app.add_flag("--dry-run", arguments->dry_run, "check every run, list them and a forecast, train nothing");
  app.add_flag("--replan", arguments->replan,
               "runs that go on choose anew what their plan.json says (`troupe train --replan`)");
  app.add_flag("--json", arguments->json, "print all results on standard output, as one line of JSON");
  app.add_option("--sort", arguments->sort,
                 "metric of the summary that orders the table; without it test.accuracy, of a sweep its own ranking")
      ->type_name("METRIC");
  auto* quiet = app.add_flag("--quiet", arguments->quiet, "no progress on standard error, errors only");
  app.add_flag("--plain", arguments->plain, "progress as plain lines, also on a terminal")->excludes(quiet);
  add_directory_file(app, arguments->directory_file);
  return [arguments] { return run_grid_command(*arguments); };
}

/// This machine, --jobs times, or --nodes, --nodes-per-run together.
core::Result<std::vector<std::string>> slots_of(const GridArguments& arguments) {
  if (!arguments.nodes) {
    if (!arguments.tls.empty())
      return core::fail(core::Errc::usage, "--ca, --cert and --key need --nodes: give it, or leave these out");
    return std::vector<std::string>(static_cast<std::size_t>(arguments.jobs));
  }
  const auto nodes = actors::parse_nodes(*arguments.nodes);
  if (!nodes) return tl::unexpected(nodes.error());
  const auto together = static_cast<std::size_t>(arguments.nodes_per_run);
  if (nodes->size() % together != 0)
    return core::fail(core::Errc::usage, fmt::format("--nodes-per-run {}: --nodes has {}, which is no multiple of it",
                                                     together, nodes->size()));
  std::vector<std::string> slots;
  for (std::size_t i = 0; i < nodes->size(); i += together)
    slots.push_back(fmt::format("{}", fmt::join(nodes->begin() + static_cast<std::ptrdiff_t>(i),
                                                nodes->begin() + static_cast<std::ptrdiff_t>(i + together), ",")));
  return slots;
}

/// What runs need to reach the nodes.
std::vector<std::string> node_arguments_of(const GridArguments& arguments) {
  std::vector<std::string> all;
  const auto add = [&](const char* flag, const std::string& file) {
    if (!file.empty()) all.insert(all.end(), {flag, file});
  };
  add("--ca", arguments.tls.ca);
  add("--cert", arguments.tls.certificate);
  add("--key", arguments.tls.key);
  return all;
}

}  // namespace

core::Result<grid::PoolOptions> pool_options(const GridArguments& arguments) {
  static const core::SteadyClock clock;
  auto slots = slots_of(arguments);
  if (!slots) return tl::unexpected(std::move(slots.error()));
  auto executable = grid::this_executable();
  if (!executable) return tl::unexpected(std::move(executable.error()));
  return grid::PoolOptions{.executable = std::move(*executable),
                           .slots = std::move(*slots),
                           .node_arguments = node_arguments_of(arguments),
                           .replan = arguments.replan,
                           .clock = &clock};
}

SignalsForRuns::SignalsForRuns(Interrupt& interrupt, grid::PoolOptions& options) : interrupt_(interrupt) {
  options.save_requests = &save_requests_;
  interrupt_.second_signal_message(
      "interrupted again: exits at once with its runs; the same command goes on from their checkpoints");
  interrupt_.on_save_request([this] { ++save_requests_; });
  interrupt_.nothing_to_save(false);
}

SignalsForRuns::~SignalsForRuns() { interrupt_.on_save_request(nullptr); }

ProgressLine::Mode checking_mode(const GridArguments& arguments) {
  const bool shown = !arguments.quiet && !arguments.plain && report::is_live_terminal(stderr);
  return shown ? ProgressLine::Mode::live : ProgressLine::Mode::quiet;
}

grid::Check run_check() {
  return [](const experiment::Settings& settings) -> core::Result<void> {
    const auto backend = make_backend(settings);
    if (!backend) return tl::unexpected(backend.error());
    const auto text = actors::check_run(settings, **backend, false);
    if (!text) return tl::unexpected(text.error());
    return {};
  };
}

grid::ProgressMode progress_mode(const GridArguments& arguments) {
  return arguments.quiet   ? grid::ProgressMode::quiet
         : arguments.plain ? grid::ProgressMode::plain
                           : grid::ProgressMode::automatic;
}

Command grid() {
  return {.name = "grid",
          .summary = "train all combinations of some settings, or search them, and compare the runs",
          .examples =
              "  troupe grid configs/grids/easgd-alpha-tau.toml --dry-run\n"
              "  troupe grid configs/grids/easgd-alpha-tau.toml --jobs 2 --set data.path=elsewhere/mnist\n"
              "  troupe grid configs/grids/easgd-alpha-tau.toml --set run.epochs=1 --sort train.images_per_s\n"
              "  troupe grid configs/grids/easgd-sweep.toml                           a search: early stops, TPE\n"
              "  troupe grid configs/grids/easgd-sweep.toml --nodes h1:4242,h2:4242   a run on each node at a time\n",
          .declare = declare_grid,
          .ranks = Ranks::none};
}

}  // namespace troupe::apps
