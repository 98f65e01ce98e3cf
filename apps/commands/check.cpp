#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "actors/run/run.hpp"
#include "apps/arguments/config.hpp"
#include "apps/backends.hpp"
#include "apps/command.hpp"
#include "apps/output.hpp"
#include "apps/program.hpp"
#include "apps/progress_line.hpp"
#include "experiment/exchange_check.hpp"
#include "experiment/state/vector_memory.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::apps {
namespace {

struct CheckArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool open_data = false;
};

/// Prints the command for a run that one process cannot execute.
void say_launch(const CheckArguments& arguments, const experiment::Settings& settings) {
  const auto& cluster = settings.cluster;
  const auto* const endpoint = transport::find_endpoint(settings.exchange.endpoint);
  const bool in_job = endpoint && endpoint->needs_job;
  const auto ranks = std::max<std::int64_t>(cluster.workers / cluster.workers_per_rank, 1);
  const auto job = fmt::format("`mpirun -n {} troupe train {}`{}", ranks, arguments.config,
                               ranks * cluster.workers_per_rank == cluster.workers
                                   ? ""
                                   : fmt::format(" makes {} workers of it", ranks * cluster.workers_per_rank));
  if (in_job)
    print_note({experiment::Note::Level::info,
                fmt::format("exchange.endpoint = \"{}\": the ranks are the workers: {}", endpoint->name, job)});
  else
    print_note(
        {experiment::Note::Level::info,
         fmt::format("exchange.algorithm and exchange.wire are those of several processes: `troupe train {} --nodes "
                     "HOST:PORT,…` or {}",
                     arguments.config, job)});
  if (in_job && !transport::built_in_endpoints().absence(endpoint->name).empty())
    print_note({experiment::Note::Level::warning,
                fmt::format("this build, or this host, has no {} (`troupe doctor`): the run needs one that has",
                            endpoint->library.title)});
}

core::Result<void> run_check(const CheckArguments& arguments) {
  auto config = load_config(arguments.config, arguments.overrides);
  if (!config) return tl::unexpected(config.error());
  const auto use = experiment::intended_use(*config);
  auto settings = experiment::resolve(std::move(*config), use);
  if (!settings) return tl::unexpected(settings.error());
  const auto backend = make_backend(*settings);
  if (!backend) return tl::unexpected(backend.error());
  if (auto* const program = dynamic_cast<guest::GuestBackend*>(backend->get())) {
    settings = with_program(*settings, *program, use);
    if (!settings) return tl::unexpected(settings.error());
  }
  ProgressLine progress("checking");
  const auto checked = actors::check_run(*settings, **backend, arguments.open_data);
  progress.clear();
  if (!checked) return tl::unexpected(checked.error());
  if (use == experiment::Use::processes) say_launch(arguments, *settings);
  for (const auto& note : checked->notes) print_note(note);
  if (const auto crowded = experiment::crowding_here(*settings); crowded && use == experiment::Use::run)
    print_note(*crowded);
  if (auto planned = experiment::planned_exchange(*settings, **backend); !planned.empty())
    print_note({experiment::Note::Level::info, std::move(planned)});
  const auto devices = devices_text(*settings);
  return print(fmt::format("{}{}{}: good{}\n", checked->text, devices.empty() ? "" : devices + "\n", arguments.config,
                           checked->data_opened ? "" : "; the data set was not opened: --data does that"));
}

Action declare_check(CLI::App& app) {
  const auto arguments = std::make_shared<CheckArguments>();
  app.add_option("CONFIG", arguments->config, "configuration file (TOML)")->required();
  add_set(app, arguments->overrides);
  app.add_flag("--data", arguments->open_data,
               "open the data set too: files that are missing or broken are errors only then");
  return [arguments] { return run_check(*arguments); };
}

}  // namespace

Command check() {
  return {.name = "check",
          .summary = "check a configuration without training, and with --data its data set",
          .examples =
              "  troupe check configs/mnist-easgd.toml\n"
              "  troupe check configs/mnist-easgd.toml --data --set data.path=elsewhere/mnist\n",
          .declare = declare_check};
}

}  // namespace troupe::apps
