#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/commands/runs/runs.hpp"
#include "apps/commands/runs/store_arguments.hpp"
#include "apps/output.hpp"
#include "core/text/plural.hpp"

namespace troupe::apps {
namespace {

struct RunsRebuildArguments {
  std::string directory = "runs";
  bool json = false;
};

core::Result<void> run_runs_rebuild(const RunsRebuildArguments& arguments) {
  auto store = store::RunStore::make_anew(arguments.directory);
  if (!store) return tl::unexpected(store.error());
  for (const auto& remark : store->remarks()) tell(fmt::format("troupe: {}\n", remark));
  const auto problems = store->problems();
  if (!problems) return tl::unexpected(problems.error());
  const auto runs = store->refreshed().read;
  if (arguments.json) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& problem : *problems) list.push_back({{"path", problem.path}, {"problem", problem.text}});
    return print(nlohmann::ordered_json{{"runs", runs}, {"problems", list}}.dump(
                     -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
                 "\n");
  }
  for (const auto& problem : *problems)
    tell(fmt::format("troupe: {}/{}: {}\n", arguments.directory, problem.path, problem.text));
  return print(fmt::format("{} read\n", core::counted(runs, "run")));
}

Action declare_runs_rebuild(CLI::App& app) {
  const auto arguments = std::make_shared<RunsRebuildArguments>();
  add_directory(app, arguments->directory);
  app.add_flag("--json", arguments->json, "print the number of runs and what cannot be read as one line of JSON");
  return [arguments] { return run_runs_rebuild(*arguments); };
}

}  // namespace

Command runs_rebuild() {
  return {.name = "rebuild",
          .summary = "make the store anew from the runs' directories, and name what cannot be read",
          .examples =
              "  troupe runs rebuild\n"
              "  troupe runs rebuild --dir /data/runs --json\n",
          .declare = declare_runs_rebuild};
}

}  // namespace troupe::apps
