#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/checks.hpp"
#include "apps/command.hpp"
#include "apps/grid/results.hpp"
#include "apps/output.hpp"
#include "core/text/nearest.hpp"
#include "experiment/plot/gnuplot.hpp"
#include "experiment/plot/grid_figures.hpp"
#include "experiment/plot/run_figures.hpp"

namespace troupe::apps {
namespace {

struct Arguments {
  std::vector<std::string> directories;
  std::string output;
  std::vector<std::string> formats{"png"};
  std::vector<std::string> metrics;
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

core::Result<std::vector<plot::Figure>> grid_figures(const Arguments& arguments, const std::string& directory) {
  const auto grid = plot::read_grid(directory);
  if (!grid) return tl::unexpected(grid.error());
  std::vector<plot::Figure> figures;
  for (const auto& metric : arguments.metrics.empty() ? usual_metrics() : arguments.metrics) {
    if (arguments.metrics.empty() && metric != usual_metrics().front() && !differs(*grid, metric)) continue;
    append(figures, plot::heat_maps(*grid, metric));
    append(figures, plot::lines(*grid, metric));
  }
  if (figures.empty())
    return core::fail(core::Errc::config, fmt::format("{}: nothing varies among the runs that are done", directory));
  return figures;
}

core::Result<std::vector<plot::Figure>> run_figures(const std::vector<std::string>& directories) {
  std::vector<plot::RunRecord> runs;
  for (const auto& directory : directories) {
    auto run = plot::read_run(directory);
    if (!run) return tl::unexpected(run.error());
    runs.push_back(std::move(*run));
  }
  for (std::size_t i = 0; i < runs.size(); ++i)  // equal names: the time distinguishes them
    if (std::ranges::count(runs, runs[i].label, &plot::RunRecord::label) > 1) {
      const auto label = runs[i].label;
      for (std::size_t k = i; k < runs.size(); ++k)
        if (runs[k].label == label)
          runs[k].label =
              (std::filesystem::path(directories[k]) / ".").lexically_normal().parent_path().filename().string();
    }
  plot::FileNames labels;  // equal name and time, in different places
  for (auto& run : runs) run.label = labels.take(run.label);
  auto figures = plot::curves(runs, runs.size() == 1 ? runs.front().label : fmt::format("{} runs", runs.size()));
  for (const auto& run : runs) append(figures, plot::cluster_figures(run, runs.size() == 1 ? "" : "-" + run.label));
  if (figures.empty()) return core::fail(core::Errc::config, "these runs have nothing to draw: no epoch ended");
  return figures;
}

core::Result<std::string> draw(const Arguments& arguments, const std::vector<plot::Figure>& figures,
                               const std::string& default_output) {
  const plot::Output output{arguments.output.empty() ? default_output : arguments.output, arguments.formats,
                            arguments.keep};
  return plot::render(figures, output).map([&](const std::vector<std::string>& paths) {
    auto text = fmt::format("{}\n", fmt::join(paths, "\n"));
    if (output.keep) text += fmt::format("{}/gnuplot\n", output.directory);
    return text;
  });
}

core::Result<void> run_plot(const Arguments& arguments) {
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
  std::string text;
  const auto add = [&](const core::Result<std::vector<plot::Figure>>& figures,
                       const std::string& default_output) -> core::Result<void> {
    if (!figures) return tl::unexpected(figures.error());
    auto drawn = draw(arguments, *figures, default_output);
    if (!drawn) return tl::unexpected(drawn.error());
    text += *drawn;
    return {};
  };
  if (!runs.empty())
    if (auto added = add(run_figures(runs), runs.size() == 1 ? runs.front() + "/plots" : "plots"); !added) return added;
  for (const auto& grid : grids)
    if (auto added = add(grid_figures(arguments, grid), grid + "/plots"); !added) return added;
  return print(text);
}

Action declare(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("RUN|GRID", arguments->directories, "directories of runs (drawn together), or of grids")->required();
  app.add_option("--output", arguments->output,
                 "directory of the pictures (default: plots/ in the run's or grid's; of "
                 "several runs: plots/)")
      ->type_name("DIR");
  app.add_option("--format", arguments->formats, "png, svg or png,svg")
      ->delimiter(',')
      ->check(word_of(plot::formats()))
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
  return {.name = "plot",
          .summary = "draw runs and grids: curves, who waited for whom, staleness, heat maps (with gnuplot)",
          .examples =
              "  troupe plot runs/20260102-030405-mnist-easgd\n"
              "  troupe plot runs/*-mnist-bsp runs/*-mnist-easgd --output pictures --format png,svg\n"
              "  troupe plot runs/easgd-alpha-tau --metric test.accuracy,test.loss\n",
          .declare = declare};
}

}  // namespace troupe::apps
