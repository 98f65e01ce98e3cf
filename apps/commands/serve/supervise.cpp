#include <memory>

#include "apps/command.hpp"
#include "service/jobs/supervisor.hpp"

namespace troupe::apps {
namespace {

Action declare_supervise(CLI::App& app) {
  const auto options = std::make_shared<service::SuperviseOptions>();
  app.add_option("FOLDER", options->folder, "the job's folder")->required();
  app.add_option("PROGRAM", options->command, "the job's program and its arguments, behind `--`")->required();
  app.add_option("--attempt", options->attempt, "which start of the job it is")->type_name("N")->required();
  return [options] { return service::supervise(*options); };
}

}  // namespace

Command supervise() {
  return {.name = "supervise",
          .summary = "run the program of a job of `troupe serve`, which starts this itself",
          .examples = "  troupe supervise --attempt 1 runs/.service/jobs/7 -- troupe train config.toml\n",
          .declare = declare_supervise,
          .ranks = Ranks::none,
          .hidden = true};
}

}  // namespace troupe::apps
