#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "apps/commands/runs/runs.hpp"
#include "apps/commands/runs/store_arguments.hpp"
#include "apps/output.hpp"
#include "core/text/plural.hpp"
#include "store/removal.hpp"

namespace troupe::apps {
namespace {

struct RunsRmArguments {
  std::string directory = "runs";
  std::vector<std::string> runs;
  bool yes = false;
};

/// Asks on a terminal. Elsewhere nothing is removed without --yes.
core::Result<bool> is_agreed(const std::vector<NamedRun>& runs, const std::string& directory) {
  if (::isatty(STDIN_FILENO) == 0)
    return core::fail(core::Errc::usage, "runs rm removes directories for good: --yes says that this is meant");
  for (const auto& run : runs) tell(fmt::format("{}/{}\n", directory, run.path));
  tell(fmt::format("Remove {} for good? [y/N] ", core::counted(runs.size(), "run")));
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

core::Result<void> run_runs_rm(const RunsRmArguments& arguments) {
  auto store = open_store(arguments.directory);
  if (!store) return tl::unexpected(store.error());
  std::vector<NamedRun> runs;
  for (const auto& given : arguments.runs) {
    auto run = find_run(store->database(), arguments.directory, given);
    if (!run) return tl::unexpected(run.error());
    if (std::ranges::find(runs, run->path, &NamedRun::path) == runs.end()) runs.push_back(std::move(*run));
  }
  if (!arguments.yes) {
    const auto agreed = is_agreed(runs, arguments.directory);
    if (!agreed) return tl::unexpected(agreed.error());
    if (!*agreed) return print("nothing removed\n");
  }
  for (const auto& run : runs) {
    if (auto removed = store::remove_run(*store, run.path); !removed) return removed;
    if (auto printed = print(fmt::format("removed {}/{}\n", arguments.directory, run.path)); !printed) return printed;
  }
  return {};
}

Action declare_runs_rm(CLI::App& app) {
  const auto arguments = std::make_shared<RunsRmArguments>();
  app.add_option("RUN", arguments->runs, "directories of runs, or names that only one run has")->required();
  app.add_flag("--yes", arguments->yes, "do not ask");
  add_directory(app, arguments->directory);
  return [arguments] { return run_runs_rm(*arguments); };
}

}  // namespace

Command runs_rm() {
  return {.name = "rm",
          .summary = "remove the directories of runs for good; refuses a run that is being trained",
          .examples = "  troupe runs rm 20260102-030405-mnist-easgd --yes\n",
          .declare = declare_runs_rm};
}

}  // namespace troupe::apps
