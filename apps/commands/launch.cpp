#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "apps/arguments/checks.hpp"
#include "apps/arguments/config.hpp"
#include "apps/command.hpp"
#include "apps/commands/train.hpp"
#include "apps/help.hpp"
#include "apps/launch/local_node.hpp"
#include "core/open_files.hpp"
#include "experiment/directory/run_directory.hpp"

namespace troupe::apps {
namespace {

struct LaunchArguments : TrainArguments {
  std::vector<std::string> command;
  std::int64_t workers = 0;  // 0: as configured
  std::int64_t epochs = 0;
  std::string strategy;
};

/// The script's name: "train" of ["python3.11", "train.py", "data.bin"].
std::string name_of(const std::vector<std::string>& command) {
  std::error_code none;
  for (std::size_t k = 1; k < command.size(); ++k)
    if (const std::filesystem::path path(command[k]);
        path.has_extension() && std::filesystem::is_regular_file(path, none))
      return path.stem().string();
  return std::filesystem::path(command.front()).stem().string();
}

/// Flags of this command that stand for keys.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kFlags{
    {{"--strategy", "strategy.name"}, {"--workers", "cluster.workers"}, {"--epochs", "run.epochs"}}};

/// As --set has them. Those of the user come last, and win.
std::vector<std::string> overrides_of(const LaunchArguments& arguments) {
  std::vector<std::string> all;
  const auto set = [&](std::string_view key, const core::Value& value) {
    all.push_back(fmt::format("{}={}", key, core::to_toml(value)));
  };
  if (!arguments.command.empty()) {
    set("model.command", arguments.command);
    if (arguments.config.empty()) set("run.name", name_of(arguments.command));
    if (arguments.config.empty()) set("model.name", name_of(arguments.command));
  }
  if (!arguments.strategy.empty()) set("strategy.name", arguments.strategy);
  if (arguments.workers > 0) set("cluster.workers", arguments.workers);
  if (arguments.epochs > 0) set("run.epochs", arguments.epochs);
  all.insert(all.end(), arguments.overrides.begin(), arguments.overrides.end());
  return all;
}

core::Result<experiment::Settings> settings_of(const LaunchArguments& arguments) {
  const auto overrides = overrides_of(arguments);
  constexpr auto kUse = experiment::Use::processes;
  if (!arguments.resume.empty())
    return experiment::RunDirectory::open(arguments.resume).and_then([&](const experiment::RunDirectory& run) {
      return load_settings(run.config_file(), resume_overrides(run, overrides), kUse);
    });
  return arguments.config.empty() ? settings_without_file(overrides, kUse)
                                  : load_settings(arguments.config, overrides, kUse);
}

/// An error about a key that was set by a flag of this command names the flag.
core::Error by_flag(core::Error error, const LaunchArguments& arguments) {
  const auto overridden = [&](std::string_view key) {
    return std::ranges::any_of(arguments.overrides, [&](const std::string& text) { return text.starts_with(key); });
  };
  for (const auto& [flag, key] : kFlags)
    if (const auto place = fmt::format("--set: {} ", key); error.message.starts_with(place) && !overridden(key))
      error.message.replace(0, std::string_view("--set").size(), flag);
  return error;
}

core::Result<void> run_program(const LaunchArguments& arguments) {
  const bool fresh = arguments.resume.empty();
  if (fresh && arguments.command.empty() && arguments.config.empty())
    return core::fail(core::Errc::usage,
                      "give the program behind `--`, as in `troupe launch --workers 2 -- python3 train.py`");
  if (auto fits = check_nodes(arguments); !fits) return fits;
  auto settings = settings_of(arguments);
  if (!settings) return tl::unexpected(std::move(settings.error()));
  if (settings->model.command.empty())
    return core::fail(
        core::Errc::usage,
        "there is no program: give it behind `--`, or as model.command; `troupe train` is for Troupe's own "
        "models");
  core::raise_open_files_limit();
  std::unique_ptr<LocalNode> here;  // before any thread starts
  if (!arguments.nodes) {
    auto node = LocalNode::start();
    if (!node) return tl::unexpected(std::move(node.error()));
    here = std::move(*node);
  }
  Interrupt interrupt;
  interrupt.nothing_to_save(true);
  actors::RunRequest request;
  request.settings = std::move(*settings);
  if (here) {
    request.nodes = {here->address()};
    request.network.tls = here->tls();
  } else if (auto added = add_nodes(arguments, request); !added) {
    return added;
  }
  return train(arguments, std::move(request), interrupt);
}

core::Result<void> run_launch(const LaunchArguments& arguments) {
  return run_program(arguments).map_error([&](core::Error error) { return by_flag(std::move(error), arguments); });
}

Action declare_launch(CLI::App& app) {
  const auto arguments = std::make_shared<LaunchArguments>();
  app.add_option("COMMAND", arguments->command, "the program and its arguments, behind `--`");
  app.add_option("--workers", arguments->workers, "how many processes of it train (cluster.workers)")
      ->type_name("N")
      ->check(whole_at_least(1));
  app.add_option("--strategy", arguments->strategy, "how they stay together (strategy.name): `troupe strategies`")
      ->type_name("STRATEGY");
  app.add_option("--epochs", arguments->epochs, "passes over the data, in place of the program's (run.epochs)")
      ->type_name("N")
      ->check(whole_at_least(1));
  add_set(app, arguments->overrides);
  auto* config =
      app.add_option("--config", arguments->config, "settings of a configuration file (TOML)")->type_name("FILE");
  app.add_option("--resume", arguments->resume, "go on in this run's directory, from its newest checkpoint")
      ->type_name("RUN_DIR")
      ->excludes(config);
  add_nodes_flags(
      app, *arguments,
      "train on these nodes (`troupe node --programs`), which have the program's files; default: this host");
  add_output(app, *arguments);
  return [arguments] { return run_launch(*arguments); };
}

}  // namespace

Command launch() {
  return {.name = "launch",
          .summary = "train with a program of your own, in PyTorch or anything else",
          .examples =
              "  troupe launch --workers 2 -- python3 examples/mnist.py --data data/mnist\n"
              "  troupe launch --workers 4 --strategy diloco --set strategy.tau=64 -- python3 train.py\n"
              "  troupe launch --workers 4 --nodes 10.0.0.11:4242,10.0.0.12:4242 -- python3 train.py\n"
              "  troupe launch --resume runs/20260102-030405-train\n"
              "The program calls troupe.join (docs/guests.md). Started by itself it trains alone.\n",
          .declare = declare_launch,
          .ranks = Ranks::none};
}

}  // namespace troupe::apps
