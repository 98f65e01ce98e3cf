#include <map>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "apps/commands/runs/runs.hpp"
#include "apps/commands/runs/store_arguments.hpp"
#include "apps/output.hpp"
#include "core/text/plural.hpp"
#include "store/query/details.hpp"
#include "store/query/export.hpp"

namespace troupe::apps {
namespace {

struct RunsShowArguments {
  std::string directory = "runs";
  std::string run;
  bool json = false;
};

using ShownRows = std::vector<std::vector<std::string>>;

void add_values(ShownRows& rows, const store::Values& values) {
  for (const auto& [key, value] : values) rows.push_back({key, store::shown(value)});
}

std::string show_text(const store::RunDetails& run, const std::vector<store::Point>& curves) {
  ShownRows head{{"run", run.path}, {"name", run.name}, {"started", run.started}, {"status", run.status}};
  const auto add = [&](const char* key, const std::string& text) {
    if (!text.empty()) head.push_back({key, text});
  };
  add("error", run.error);
  add("problem", run.problem);
  add("tags", fmt::format("{}", fmt::join(run.notes.tags, ", ")));
  add("note", run.notes.note);
  for (const auto& [kind, source] : run.lineage) add(kind.c_str(), source);
  ShownRows results, options, series;
  add_values(results, run.results);
  add_values(options, run.options);
  std::map<std::string, std::vector<const store::Point*>> points;
  for (const auto& point : curves) points[point.series].push_back(&point);
  for (const auto& [name, all] : points)
    series.push_back(
        {name, core::counted(all.size(), "point"), "last " + store::shown(store::Cell(all.back()->value))});
  auto text = aligned_table(head);
  if (!results.empty()) text += "\nresults\n" + aligned_table(results);
  if (!series.empty()) text += "\ncurves\n" + aligned_table(series);
  if (!options.empty()) text += "\noptions\n" + aligned_table(options);
  return text;
}

core::Result<std::string> shown_run(store::Database& database, const RunsShowArguments& arguments) {
  const auto named = find_run(database, arguments.directory, arguments.run);
  if (!named) return tl::unexpected(named.error());
  const auto run = store::details_of(database, named->id);
  if (!run) return tl::unexpected(run.error());
  const auto curves = store::curves_of(database, named->id);
  if (!curves) return tl::unexpected(curves.error());
  return arguments.json ? store::json_line(*run, *curves) : show_text(*run, *curves);
}

core::Result<void> run_runs_show(const RunsShowArguments& arguments) {
  const auto text = ask_store<std::string>(arguments.directory,
                                           [&](store::Database& database) { return shown_run(database, arguments); });
  if (!text) return tl::unexpected(text.error());
  return print(*text);
}

Action declare_runs_show(CLI::App& app) {
  const auto arguments = std::make_shared<RunsShowArguments>();
  app.add_option("RUN", arguments->run, "directory of a run, or the name that only one run has")->required();
  add_directory(app, arguments->directory);
  app.add_flag("--json", arguments->json, "one line of JSON, with all points of all curves");
  return [arguments] { return run_runs_show(*arguments); };
}

}  // namespace

Command runs_show() {
  return {.name = "show",
          .summary = "show all that the store knows of a run",
          .examples =
              "  troupe runs show 20260102-030405-mnist-easgd\n"
              "  troupe runs show mnist-easgd --json\n",
          .declare = declare_runs_show};
}

}  // namespace troupe::apps
