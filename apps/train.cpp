#include <memory>
#include <optional>

#include <fmt/format.h>

#include "actors/nodes.hpp"
#include "actors/run.hpp"
#include "apps/backends.hpp"
#include "apps/command.hpp"
#include "apps/config_arguments.hpp"
#include "apps/interrupt.hpp"
#include "apps/network_arguments.hpp"
#include "apps/output.hpp"
#include "experiment/run_directory.hpp"

namespace troupe::apps {
namespace {

struct Arguments {
  std::string config;
  std::string resume;
  std::vector<std::string> overrides;
  std::optional<std::string> nodes;  // empty: a list that somebody forgot to fill, and an error
  security::TlsFiles tls;
  bool json = false;
  bool quiet = false;
  bool plain = false;
};

core::Result<experiment::Settings> settings_of(const Arguments& arguments) {
  if (arguments.config.empty() == arguments.resume.empty())
    return core::fail(core::Errc::usage, "give either a CONFIG or --resume RUN_DIR; see `troupe train --help`");
  const auto use = arguments.nodes ? experiment::Use::processes : experiment::Use::run;
  if (!arguments.config.empty()) return load_settings(arguments.config, arguments.overrides, use);
  return experiment::RunDirectory::open(arguments.resume).and_then([&](const experiment::RunDirectory& run) {
    return load_settings(run.config_file(), arguments.overrides, use);
  });
}

actors::ConsoleOptions::Mode console_mode(const Arguments& arguments) {
  using Mode = actors::ConsoleOptions::Mode;
  return arguments.quiet ? Mode::quiet : arguments.plain ? Mode::plain : Mode::automatic;
}

core::Result<void> run_train(const Arguments& arguments) {
  auto settings = settings_of(arguments);
  if (!settings) return tl::unexpected(std::move(settings.error()));
  const Interrupt interrupt;  // before the backend may start threads
  auto backend = make_backend(settings->cluster.device);
  if (!backend) return tl::unexpected(std::move(backend.error()));

  actors::RunRequest request;
  request.settings = std::move(*settings);
  request.resume = arguments.resume;
  request.console.mode = console_mode(arguments);
  request.console.stop = interrupt.token();
  if (arguments.nodes) {
    auto nodes = actors::parse_nodes(*arguments.nodes);
    if (!nodes) return tl::unexpected(std::move(nodes.error()));
    request.nodes = std::move(*nodes);
    request.network.tls = arguments.tls;
    request.version = TROUPE_VERSION;
  }
  const auto end = actors::run_training(request, **backend, interrupt.token());

  // A run that failed on its way has a summary too; one that never began has not.
  core::Result<void> printed;
  if (arguments.json && !end.summary.run.empty()) printed = print(experiment::to_json(end.summary) + "\n");
  if (end.failed) return tl::unexpected(end.error);
  return printed;
}

Action declare(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("CONFIG", arguments->config, "configuration file (TOML)");
  add_set(app, arguments->overrides);
  app.add_option("--resume", arguments->resume, "go on in this run's directory, from its newest checkpoint")
      ->type_name("RUN_DIR");
  app.add_option("--nodes", arguments->nodes, "train on these nodes (`troupe node`): workers are spread over them")
      ->type_name("HOST:PORT,…");
  add_tls(app, arguments->tls);
  app.add_flag("--json", arguments->json, "print the run's summary on standard output, as one line of JSON");
  auto* quiet = app.add_flag("--quiet", arguments->quiet, "no progress on standard error, errors only");
  app.add_flag("--plain", arguments->plain, "progress as plain lines, also on a terminal")->excludes(quiet);
  return [arguments] { return run_train(*arguments); };
}

std::string appendix() {
  return "Keys of a configuration and what they are when it does not set them. Each can be set with --set "
         "SECTION.KEY=VALUE.\n\n" +
         experiment::schema().help();
}

}  // namespace

Command train() {
  return {.name = "train",
          .summary = "train a model",
          .examples =
              "  troupe train configs/glyphs-easgd.toml                   needs no data: it draws its own\n"
              "  troupe train configs/mnist-easgd.toml --set strategy.tau=8 --set cluster.workers=4\n"
              "  troupe train configs/mnist-bsp.toml --quiet --json > summary.json\n"
              "  troupe train configs/mnist-easgd.toml --nodes 10.0.0.11:4242,10.0.0.12:4242 \\\n"
              "      --ca certs/ca.pem --cert certs/me.pem --key certs/me.key\n"
              "  troupe train --resume runs/20260102-030405-mnist-bsp --set run.epochs=10\n",
          .declare = declare,
          .appendix = appendix};
}

}  // namespace troupe::apps
