#include <cstdio>
#include <functional>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/arguments/checks.hpp"
#include "apps/command.hpp"
#include "apps/interrupt.hpp"
#include "apps/output.hpp"
#include "apps/reports/comparison.hpp"
#include "experiment/plot/fonts.hpp"
#include "experiment/plot/gnuplot.hpp"
#include "experiment/plot/grid_record.hpp"
#include "experiment/plot/run_figures.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::apps {
namespace {

struct CompareArguments {
  std::vector<std::string> directories;
  std::string output = "plots";
  std::vector<std::string> formats{"png"};
  bool no_picture = false;
  bool json = false;
};

/// Directories of runs; a grid's directory stands for its runs that are done.
core::Result<std::vector<std::string>> directories_of_runs(const std::vector<std::string>& given) {
  std::vector<std::string> runs;
  for (const auto& directory : given) {
    const auto is_grid = plot::is_grid(directory);
    if (!is_grid) return tl::unexpected(is_grid.error());
    if (!*is_grid) {
      runs.push_back(directory);
      continue;
    }
    const auto grid = plot::read_grid(directory);
    if (!grid) return tl::unexpected(grid.error());
    for (const auto& run : grid->runs) runs.push_back(run.directory);
  }
  if (runs.size() < 2)
    return core::fail(core::Errc::usage,
                      fmt::format("compare needs two runs or more, not {}; see `troupe compare --help`", runs.size()));
  return runs;
}

core::Result<std::vector<std::string>> draw(const CompareArguments& arguments, const std::vector<ComparedRun>& runs) {
  if (arguments.no_picture) return {};
  std::vector<plot::RunRecord> records;
  for (const auto& run : runs) records.push_back(run.record);
  plot::InstalledFonts fonts;
  for (const auto& name : plot::replace_labels(records, fonts)) tell(fmt::format("troupe: {}\n", explanation(name)));
  const auto figures = plot::curves_together(records, "compare", "");
  if (figures.empty()) return {};
  const Interrupt interrupt;
  const plot::Output output{.directory = arguments.output,
                            .formats = arguments.formats,
                            .publish = std::bind_front(nn::replace_file, std::ref(nn::system_files())),
                            .stop = interrupt.token()};
  return plot::render(figures, output).map_error([](core::Error error) {
    if (error.code != core::Errc::interrupted) error.message += "; --no-picture compares without one";
    return error;
  });
}

core::Result<void> run_compare(const CompareArguments& arguments) {
  const auto directories = directories_of_runs(arguments.directories);
  if (!directories) return tl::unexpected(directories.error());
  const auto runs = read_compared(*directories);
  if (!runs) return tl::unexpected(runs.error());
  const auto pictures = draw(arguments, *runs);
  if (!pictures) return tl::unexpected(pictures.error());
  if (arguments.json) return print(comparison_json(*runs, *pictures).dump() + "\n");
  auto text = comparison_text(*runs, terminal_columns().value_or(0));
  if (!pictures->empty()) text += fmt::format("\n{}\n", fmt::join(*pictures, "\n"));
  return print(text);
}

Action declare_compare(CLI::App& app) {
  const auto arguments = std::make_shared<CompareArguments>();
  app.add_option("RUN|GRID", arguments->directories, "directories of runs, or of grids: their runs that are done")
      ->required();
  app.add_option("--output", arguments->output, "directory of the picture")->type_name("DIR")->capture_default_str();
  app.add_option("--format", arguments->formats, "png, svg or png,svg")
      ->delimiter(',')
      ->check(word_of(plot::formats()))
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_flag("--no-picture", arguments->no_picture, "draw no curves: gnuplot is not needed, no file is written");
  app.add_flag("--json", arguments->json, "print options, results and the picture's path as one line of JSON");
  return [arguments] { return run_compare(*arguments); };
}

}  // namespace

Command compare() {
  return {.name = "compare",
          .summary = "compare runs: the options that differ, the results side by side, their curves in one picture",
          .examples =
              "  troupe compare runs/20260102-030405-mnist-bsp runs/20260102-031415-mnist-easgd\n"
              "  troupe compare runs/easgd-alpha-tau --no-picture\n"
              "  troupe compare runs/*-mnist-* --json\n",
          .declare = declare_compare};
}

}  // namespace troupe::apps
