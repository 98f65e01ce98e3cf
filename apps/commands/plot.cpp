#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/arguments/checks.hpp"
#include "apps/command.hpp"
#include "apps/grid/results.hpp"
#include "apps/interrupt.hpp"
#include "apps/output.hpp"
#include "apps/progress_line.hpp"
#include "core/text/nearest.hpp"
#include "experiment/plot/cluster_figures.hpp"
#include "experiment/plot/fonts.hpp"
#include "experiment/plot/gnuplot.hpp"
#include "experiment/plot/grid_figures.hpp"
#include "experiment/plot/run_figures.hpp"
#include "experiment/plot/run_labels.hpp"
#include "experiment/plot/sweep_figures.hpp"
#include "experiment/sweep/record.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::apps {
namespace {

struct PlotArguments {
  std::vector<std::string> directories;
  std::string output;
  std::vector<std::string> formats{"png"};
  std::vector<std::string> metrics;
  std::vector<std::string> over{"epochs", "seconds"};
  bool keep = false;
};

const std::vector<std::string>& usual_metrics() {
  static const std::vector<std::string> metrics{"test.accuracy", "train.images_per_s", "exchange.staleness_mean",
                                                "time.wait_s"};
  return metrics;
}

void append(std::vector<plot::Figure>& all, std::vector<plot::Figure> more) {
  std::ranges::move(more, std::back_inserter(all));
}

/// Some metrics are equal for every run of a grid (no staleness): they are drawn only on request.
bool differs(const plot::GridRecord& grid, const std::string& metric) {
  return std::ranges::any_of(grid.runs, [&](const plot::GridRun& run) {
    return plot::metric_of(run, metric) != plot::metric_of(grid.runs.front(), metric);
  });
}

void explain(const std::vector<plot::ReplacedName>& replaced) {
  for (const auto& name : replaced) tell(fmt::format("troupe: {}\n", explanation(name)));
}

std::vector<plot::Axis> axes(const PlotArguments& arguments) {
  std::vector<plot::Axis> over;
  for (const auto& name : arguments.over)
    if (const auto axis = plot::axis_of(name); std::ranges::find(over, axis) == over.end()) over.push_back(axis);
  return over;
}

/// The results of a grid outlive the directories of its runs: without one of these there are no curves.
core::Result<std::vector<plot::Figure>> grid_curves(const plot::GridRecord& grid, const std::vector<plot::Axis>& over) {
  std::vector<plot::RunRecord> runs;
  for (const auto& run : grid.runs) {
    auto record = plot::read_run(run.directory);
    if (!record && record.error().code != core::Errc::config) return tl::unexpected(record.error());
    if (!record) {
      tell(fmt::format("troupe: no curves: {}\n", record.error().message));
      return std::vector<plot::Figure>();
    }
    runs.push_back(std::move(*record));
  }
  return plot::series_curves(grid, runs, over);
}

core::Result<std::vector<plot::Figure>> grid_figures(const PlotArguments& arguments, const std::string& directory) {
  auto grid = plot::read_grid(directory);
  if (!grid) return tl::unexpected(grid.error());
  plot::InstalledFonts fonts;
  explain(plot::replace_labels(*grid, fonts));
  std::vector<plot::Figure> figures;
  for (const auto& metric : arguments.metrics.empty() ? usual_metrics() : arguments.metrics) {
    if (arguments.metrics.empty() && metric != usual_metrics().front() && !differs(*grid, metric)) continue;
    append(figures, plot::heat_maps(*grid, metric));
    append(figures, plot::lines(*grid, metric));
    append(figures, plot::bars(*grid, metric));
  }
  if (arguments.metrics.empty() && grid->keys.empty()) {
    auto curves = grid_curves(*grid, axes(arguments));
    if (!curves) return curves;
    append(figures, std::move(*curves));
  }
  if (figures.empty())
    return core::fail(core::Errc::config, fmt::format("{}: no run that is done has a number to draw", directory));
  return figures;
}

core::Result<std::vector<plot::Figure>> sweep_pictures(const sweep::Record& record, const std::string& directory) {
  const auto path = std::filesystem::path(directory);
  auto figures = plot::sweep_figures(record, (path.has_filename() ? path : path.parent_path()).filename().string());
  if (figures.empty()) return core::fail(core::Errc::config, fmt::format("{}: no trial has a score yet", directory));
  return figures;
}

core::Result<std::vector<plot::Figure>> run_figures(const std::vector<std::string>& directories,
                                                    const std::vector<plot::Axis>& over) {
  auto runs = plot::read_runs(directories);
  if (!runs) return tl::unexpected(runs.error());
  std::vector<std::string> names;  // of files: they need no font
  plot::FileNames taken;
  for (const auto& run : *runs) names.push_back(taken.take(plot::file_part(run.label)));
  plot::InstalledFonts fonts;
  explain(plot::replace_labels(*runs, fonts));
  auto figures = plot::curves(*runs, runs->size() == 1 ? runs->front().label : "", over);
  const bool over_samples = std::ranges::find(over, plot::Axis::samples) != over.end();
  for (std::size_t i = 0; i < runs->size(); ++i)
    append(figures, plot::cluster_figures((*runs)[i], runs->size() == 1 ? "" : "-" + names[i]));
  if (figures.empty())
    return core::fail(core::Errc::config, "these runs have nothing to draw: no worker has reported a step yet");
  for (std::size_t i = 0; i < runs->size(); ++i)
    if (!plot::has_curves((*runs)[i]))
      tell(fmt::format("troupe: {} is not in the curves: no worker has reported a step yet\n", directories[i]));
    else if (over_samples && !((*runs)[i].epoch_samples > 0))
      tell(fmt::format(
          "troupe: {} is not in the curves over samples: its log does not say how many samples an epoch has\n",
          directories[i]));
  return figures;
}

core::Result<std::string> draw(const PlotArguments& arguments, const std::vector<plot::Figure>& figures,
                               const std::string& default_output, const std::stop_token& stop) {
  const plot::Output output{.directory = arguments.output.empty() ? default_output : arguments.output,
                            .formats = arguments.formats,
                            .keep = arguments.keep,
                            .publish = std::bind_front(nn::replace_file, std::ref(nn::system_files())),
                            .stop = stop};
  return plot::render(figures, output).map([&](const std::vector<std::string>& paths) {
    auto text = fmt::format("{}\n", fmt::join(paths, "\n"));
    if (output.keep) text += fmt::format("{}/gnuplot\n", output.directory);
    return text;
  });
}

core::Result<void> run_plot(const PlotArguments& arguments) {
  const auto known = grid::metric_names();
  for (const auto& metric : arguments.metrics)
    if (std::ranges::find(known, metric) == known.end())
      return core::fail(core::Errc::usage, fmt::format("--metric: no summary has \"{}\"{}", metric,
                                                       core::nearest_hint(metric, known, core::Quotes::no)));
  std::vector<std::string> runs, grids;
  for (const auto& directory : arguments.directories) {
    if (std::error_code ignored; !std::filesystem::exists(directory, ignored))
      return core::fail(core::Errc::config,
                        fmt::format("{} does not exist: give the directory of a run or of a grid", directory));
    const auto is_grid = plot::is_grid(directory);
    if (!is_grid) return tl::unexpected(is_grid.error());
    (*is_grid ? grids : runs).push_back(directory);
  }
  const Interrupt interrupt;  // before the progress line's thread
  ProgressLine progress("drawing");
  std::string text;
  const auto add = [&](const core::Result<std::vector<plot::Figure>>& figures,
                       const std::string& default_output) -> core::Result<void> {
    if (!figures) return tl::unexpected(figures.error());
    auto drawn = draw(arguments, *figures, default_output, interrupt.token());
    if (!drawn) return tl::unexpected(drawn.error());
    text += *drawn;
    return {};
  };
  if (!runs.empty())
    if (auto added = add(run_figures(runs, axes(arguments)), runs.size() == 1 ? runs.front() + "/plots" : "plots");
        !added)
      return added;
  for (const auto& grid : grids) {
    const auto record = sweep::read_record(grid);
    if (!record) return tl::unexpected(record.error());
    auto added = add(*record ? sweep_pictures(**record, grid) : grid_figures(arguments, grid), grid + "/plots");
    if (!added) return added;
  }
  progress.clear();
  return print(text);
}

Action declare_plot(CLI::App& app) {
  const auto arguments = std::make_shared<PlotArguments>();
  app.add_option("RUN|GRID", arguments->directories, "directories of runs (drawn together), of grids or of sweeps")
      ->required();
  app.add_option("--output", arguments->output,
                 "directory of the pictures (default: plots/ in the run's or grid's; of "
                 "several runs: plots/)")
      ->type_name("DIR");
  app.add_option("--format", arguments->formats, "png, svg or png,svg")
      ->delimiter(',')
      ->check(word_of(plot::formats()))
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_option(
         "--over", arguments->over,
         "what curves are drawn over: epochs, seconds or samples, a panel for each; samples are those of all workers")
      ->delimiter(',')
      ->check(word_of(plot::axis_names()))
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_option("--metric", arguments->metrics,
                 "of a grid: metrics of the summary (default: " + fmt::format("{}", fmt::join(usual_metrics(), ", ")) +
                     ", where they differ)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("METRIC");
  app.add_flag("--keep", arguments->keep, "keep gnuplot's scripts and data in a folder gnuplot beside the pictures");
  return [arguments] { return run_plot(*arguments); };
}

}  // namespace

Command plot() {
  return {
      .name = "plot",
      .summary = "draw runs, grids and sweeps: curves, bars, who waited for whom, staleness, heat maps (with gnuplot)",
      .examples =
          "  troupe plot runs/20260102-030405-mnist-easgd\n"
          "  troupe plot runs/*-mnist-bsp runs/*-mnist-easgd --output pictures --format png,svg\n"
          "  troupe plot runs/*-gpt-* --over samples\n"
          "  troupe plot runs/easgd-alpha-tau --metric test.accuracy,test.loss\n",
      .declare = declare_plot};
}

}  // namespace troupe::apps
