#include "store/query/export.hpp"

#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/arguments/checks.hpp"
#include "apps/commands/runs/runs.hpp"
#include "apps/commands/runs/store_arguments.hpp"
#include "apps/output.hpp"
#include "core/text/plural.hpp"
#include "store/query/list.hpp"

namespace troupe::apps {
namespace {

struct RunsExportArguments {
  std::string directory = "runs";
  std::vector<std::string> filter;
  std::string format = "json";
  std::string output;
};

/// `Writer`: store::MlflowWriter or store::WandbWriter.
template <class Writer>
core::Result<void> export_directory(store::RunStore& store, const store::Listing& listing,
                                    const RunsExportArguments& arguments, const std::string& then) {
  if (arguments.output.empty())
    return core::fail(
        core::Errc::usage,
        fmt::format("--format {} needs --output DIR: a directory that does not exist yet", arguments.format));
  const auto writer = Writer::create(arguments.output, arguments.directory);
  if (!writer) return tl::unexpected(writer.error());
  for (const auto id : listing.runs) {
    const auto run = store::details_of(store.database(), id);
    if (!run) return tl::unexpected(run.error());
    const auto curves = store::curves_of(store.database(), id);
    if (!curves) return tl::unexpected(curves.error());
    if (auto added = writer->add(*run, *curves); !added) return added;
  }
  return print(fmt::format("{} in {}: {}\n", core::counted(listing.runs.size(), "run"), arguments.output, then));
}

core::Result<void> export_text(store::RunStore& store, const store::Listing& listing, bool csv) {
  std::vector<store::RunDetails> all;
  for (const auto id : listing.runs) {
    auto run = store::details_of(store.database(), id);
    if (!run) return tl::unexpected(run.error());
    if (csv) {
      all.push_back(std::move(*run));
      continue;
    }
    const auto curves = store::curves_of(store.database(), id);
    if (!curves) return tl::unexpected(curves.error());
    if (auto printed = print(store::json_line(*run, *curves)); !printed) return printed;
  }
  return csv ? print(store::csv_of(all)) : core::Result<void>();
}

core::Result<void> run_runs_export(const RunsExportArguments& arguments) {
  const auto conditions = store::parse_filter(fmt::format("{}", fmt::join(arguments.filter, " ")));
  if (!conditions) return tl::unexpected(conditions.error());
  const bool to_directory = arguments.format == "mlflow" || arguments.format == "wandb";
  if (!to_directory && !arguments.output.empty())
    return core::fail(core::Errc::usage,
                      "--output is for --format mlflow and wandb: the other forms go to standard output");
  auto store = open_store(arguments.directory);
  if (!store) return tl::unexpected(store.error());
  const auto listing = store::list(store->database(), {.conditions = *conditions, .ascending = true});
  if (!listing) return tl::unexpected(listing.error());
  if (arguments.format == "mlflow")
    return export_directory<store::MlflowWriter>(*store, *listing, arguments,
                                                 "mlflow ui --backend-store-uri " + arguments.output);
  if (arguments.format == "wandb")
    return export_directory<store::WandbWriter>(*store, *listing, arguments,
                                                "wandb sync " + arguments.output + "/offline-run-*");
  return export_text(*store, *listing, arguments.format == "csv");
}

Action declare_runs_export(CLI::App& app) {
  const auto arguments = std::make_shared<RunsExportArguments>();
  app.add_option("FILTER", arguments->filter, "the runs: conditions as in `troupe runs list`; none: all");
  app.add_option(
         "--format", arguments->format,
         "json (a line per run, with curves), csv (a row per run), mlflow (a directory) or wandb (offline runs)")
      ->check(word_of({"json", "csv", "mlflow", "wandb"}))
      ->capture_default_str();
  app.add_option("--output", arguments->output, "the directory that mlflow or wandb reads; it must be new or empty")
      ->type_name("DIR");
  add_directory(app, arguments->directory);
  return [arguments] { return run_runs_export(*arguments); };
}

}  // namespace

Command runs_export() {
  return {.name = "export",
          .summary = "write runs for other programs: JSON, CSV, or a directory of MLflow's or W&B's",
          .examples =
              "  troupe runs export tag=paper --format csv > runs.csv\n"
              "  troupe runs export --format mlflow --output mlruns\n"
              "  troupe runs export tag=paper --format wandb --output wandb\n",
          .declare = declare_runs_export};
}

}  // namespace troupe::apps
