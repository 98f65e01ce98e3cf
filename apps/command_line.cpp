#include "apps/command_line.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <list>
#include <optional>

#include <fmt/format.h>

#include "apps/command.hpp"
#include "apps/job_environment.hpp"
#include "apps/output.hpp"
#include "nn/layers_config.hpp"

namespace troupe::apps {
namespace {

const Command& program() {
  static const Command root{.name = "troupe",
                            .summary = "Troupe trains neural networks with actors.",
                            .examples =
                                "  troupe train configs/glyphs-easgd.toml\n"
                                "  troupe train configs/mnist-bsp.toml --set cluster.workers=4 --json\n"
                                "  troupe train --resume runs/20260102-030405-mnist-bsp\n"
                                "  troupe strategies easgd\n"
                                "  troupe doctor\n",
                            .declare = nullptr,
                            .subcommands = {train(), simulate(), replay(), grid(), plot(), compare(), check(), eval(),
                                            strategies(), models(), bench(), node(), nodes(), certs(), doctor()}};
  return root;
}

/// A command with its parser. Parents come before their subcommands.
struct Parsed {
  const Command* command;
  CLI::App* app;
  Action action;
};

void add(const Command& command, CLI::App& app, std::list<Parsed>& all) {
  app.set_help_flag("-h,--help", "examples, arguments and flags");
  app.allow_extras();  // dispatch() reports unknown arguments
  app.require_subcommand(0, 1);
  all.push_back({&command, &app, command.declare ? command.declare(app) : nullptr});
  for (const auto& sub : command.subcommands) add(sub, *app.add_subcommand(sub.name, sub.summary), all);
}

/// "troupe bench step".
std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + " " + app.get_name();
}

std::string help(const Parsed& parsed) {
  const auto* parent = parsed.app->get_parent();
  std::string usage = parsed.app->help(parent != nullptr ? full_name(*parent) : "");
  while (usage.ends_with("\n\n")) usage.pop_back();
  return fmt::format("Examples:\n{}\n{}{}", parsed.command->examples, usage,
                     parsed.command->appendix ? "\n" + parsed.command->appendix() : "");
}

std::vector<std::string> flags(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// The error for `argument`, which no command or flag accepts.
std::string unexpected(const Parsed& parsed, const std::string& argument) {
  const auto see = fmt::format("see `{} --help`", full_name(*parsed.app));
  if (argument.starts_with("-")) {
    const auto flag = argument.substr(0, argument.find('='));
    return fmt::format("unknown flag {} (nearest: {}); {}", flag, nn::nearest_word(flag, flags(*parsed.app)), see);
  }
  if (parsed.command->subcommands.empty()) return fmt::format("unexpected argument \"{}\"; {}", argument, see);
  std::vector<std::string> names;
  for (const auto& sub : parsed.command->subcommands) names.push_back(sub.name);
  return fmt::format("unknown subcommand \"{}\" (nearest: {}); {}", argument, nn::nearest_word(argument, names), see);
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

core::Result<void> usage(std::string message) { return core::fail(core::Errc::usage, std::move(message)); }

/// Of the ranks that train together, only rank 0 writes output.
bool is_silent(int argc, const char* const* argv) {
  if (argc < 2 || argv[1] != std::string_view("train")) return false;
  const auto job = job_environment();
  return job && job->rank > 0;
}

/// The Action of the given command, or a direct answer (--help, --version).
core::Result<void> dispatch(int argc, const char* const* argv) {
  CLI::App app(program().summary, program().name);
  std::list<Parsed> all;
  add(program(), app, all);
  bool version = false;
  app.add_flag("--version", version, "the program's version");

  std::optional<std::string> refused;
  bool wants_help = false;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    wants_help = true;
  } catch (const CLI::ParseError& error) {
    refused = one_line(error.what());
  }
  const Parsed* chosen = &all.front();
  for (const auto& parsed : all)
    if (parsed.app->parsed()) chosen = &parsed;
  if (wants_help) return print(help(*chosen));
  // An unknown flag explains a missing argument better than the reverse.
  for (const auto& parsed : all)
    if (const auto extras = parsed.app->remaining(); !extras.empty()) return usage(unexpected(parsed, extras.front()));
  if (refused) return usage(fmt::format("{}; see `{} --help`", *refused, full_name(*chosen->app)));
  if (version) return print(fmt::format("troupe {}\n", TROUPE_VERSION));
  if (chosen->action) return chosen->action();
  return usage(fmt::format("which subcommand? see `{} --help`", full_name(*chosen->app)));
}

}  // namespace

int run(int argc, const char* const* argv) {
  core::Result<void> result;
  try {
    result = dispatch(argc, argv);
  } catch (const std::bad_alloc&) {
    result = core::fail(core::Errc::out_of_memory, "memory ran out: use a smaller data.batch or fewer workers");
  } catch (const std::exception& error) {
    result = core::fail(core::Errc::internal, fmt::format("internal error: {}", error.what()));
  }
  if (result) return 0;
  if (!is_silent(argc, argv)) fmt::print(stderr, "troupe: {}\n", one_line(result.error().message));
  return core::exit_code(result.error().code);
}

}  // namespace troupe::apps
