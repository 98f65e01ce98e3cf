#include "apps/command_line.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iterator>
#include <list>
#include <optional>

#include <fmt/format.h>

#include "apps/command_tree.hpp"
#include "apps/help.hpp"
#include "apps/job_environment.hpp"
#include "apps/output.hpp"
#include "core/text/nearest.hpp"

namespace troupe::apps {
namespace {

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
    return fmt::format("unknown flag {}{}; {}", flag, core::nearest_hint(flag, flags(*parsed.app), core::Quotes::no),
                       see);
  }
  if (parsed.command->subcommands.empty()) return fmt::format("unexpected argument \"{}\"; {}", argument, see);
  std::vector<std::string> names;
  for (const auto& sub : parsed.command->subcommands)
    if (!sub.hidden) names.push_back(sub.name);
  return fmt::format("unknown subcommand \"{}\"{}; {}", argument, core::nearest_hint(argument, names, core::Quotes::no),
                     see);
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

core::Result<void> usage(std::string message) { return core::fail(core::Errc::usage, std::move(message)); }

using Words = std::vector<std::string>;

/// The words around --help.
struct HelpRequest {
  Words before;  // a command, and arguments that may follow it
  Words after;   // further subcommands, then a topic
};

/// `troupe help train data`, `troupe train --help data`. Nothing: other arguments.
std::optional<HelpRequest> help_request(const Words& arguments) {
  const auto is_word = [](const std::string& argument) { return !argument.starts_with("-"); };
  HelpRequest wanted;
  if (!arguments.empty() && arguments.front() == "help") {
    std::copy_if(arguments.begin() + 1, arguments.end(), std::back_inserter(wanted.after), is_word);
    return wanted;
  }
  const auto dashes = std::ranges::find(arguments, "--");  // behind them --help is a program's
  const auto flag = std::find_if(arguments.begin(), dashes,
                                 [](const std::string& argument) { return argument == "--help" || argument == "-h"; });
  if (flag == dashes) return std::nullopt;
  wanted.before.assign(arguments.begin(), std::find_if_not(arguments.begin(), flag, is_word));
  std::copy_if(flag + 1, dashes, std::back_inserter(wanted.after), is_word);
  return wanted;
}

/// Whether the words of a program, the argument COMMAND of `app`, stand before `--`, or without it.
bool program_before_dashes(const CLI::App& app, const Words& arguments) {
  const auto* const command = app.get_option_no_throw("COMMAND");
  if (command == nullptr || command->empty()) return false;
  const auto dashes = std::ranges::find(arguments, "--");
  if (dashes != arguments.end() && command->results() == Words(dashes + 1, arguments.end())) return false;
  const auto first = std::find(arguments.begin(), dashes, command->results().front());
  // The value of an unknown flag is no program.
  const auto extras = app.remaining();
  return first != dashes && std::none_of(arguments.begin(), first, [&](const std::string& argument) {
           return argument.starts_with("-") && std::ranges::find(extras, argument) != extras.end();
         });
}

/// The first flag of `app` that was given an empty value, as by a variable of the shell that is not set: the command would run as if it
/// were not there. Arguments without a name may be empty: a program's, or a note.
std::string flag_with_empty_value(const CLI::App& app) {
  for (const auto* option : app.get_options()) {
    const bool has_name = !option->get_lnames().empty();
    if (has_name && option->get_expected_max() > 0 &&
        std::ranges::find(option->results(), "") != option->results().end())
      return "--" + option->get_lnames().front();
  }
  return {};
}

core::Result<std::string> help(const HelpRequest& wanted, const std::list<Parsed>& all) {
  const Parsed* at = &all.front();
  std::string topic;
  const auto follow = [&](const std::string& word) -> core::Result<void> {
    const auto* next = subcommand(all, *at, word);
    if (next == nullptr) return core::fail(core::Errc::usage, unexpected(*at, word));
    at = next;
    return {};
  };
  for (const auto& word : wanted.before) {
    if (at->command->subcommands.empty()) break;  // an argument
    if (auto followed = follow(word); !followed) return tl::unexpected(followed.error());
  }
  for (const auto& word : wanted.after) {
    if (!at->command->subcommands.empty()) {
      if (auto followed = follow(word); !followed) return tl::unexpected(followed.error());
    } else if (at->command->appendix && topic.empty()) {
      topic = word;
    } else {
      return core::fail(core::Errc::usage, fmt::format("the help of `{}` has no part \"{}\"; see `{} --help`",
                                                       full_name(*at->app), word, full_name(*at->app)));
    }
  }
  const auto columns = output_columns();
  const auto text = topic.empty() ? command_help(*at->command, *at->app, columns) : "";
  if (!at->command->appendix) return text;
  return at->command->appendix(topic, columns).map([&](const std::string& appendix) { return text + appendix; });
}

/// The Action of the given command, or a direct answer (help, --version). `silent` at a rank above 0, whose output rank 0 prints.
core::Result<void> dispatch(const Words& arguments, bool& silent) {
  CLI::App app(program().summary, program().name);
  const auto all = declare_all(app);
  const auto job = job_environment();
  silent = job && job->rank > 0;
  if (const auto wanted = help_request(arguments)) {
    const auto text = help(*wanted, all);
    if (!text) return tl::unexpected(text.error());
    return silent ? core::Result<void>() : print(*text);
  }

  std::optional<std::string> refused;
  try {
    app.parse(Words(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    refused = one_line(error.what());
  }
  const Parsed* chosen = &all.front();
  for (const auto& parsed : all)
    if (parsed.app->parsed()) chosen = &parsed;
  const auto ranks = chosen->command->ranks;
  silent = silent && ranks != Ranks::each;
  if (program_before_dashes(*chosen->app, arguments))
    return usage(
        fmt::format("the program goes behind `--`: {} --workers 2 -- python3 train.py", full_name(*chosen->app)));
  // An unknown flag explains a missing argument better than the reverse.
  const auto extras_of = [](const Parsed& parsed) {
    auto extras = parsed.app->remaining();
    std::erase(extras, "--");  // that what follows are no flags
    return extras;
  };
  if (const auto extras = extras_of(*chosen); !extras.empty() && extras.front().starts_with("-"))
    return usage(unexpected(*chosen, extras.front()));
  for (const auto& parsed : all)
    if (const auto extras = extras_of(parsed); !extras.empty()) return usage(unexpected(parsed, extras.front()));
  if (const auto flag = flag_with_empty_value(*chosen->app); !flag.empty())
    return usage(fmt::format("{}: its value is empty; see `{} --help`", flag, full_name(*chosen->app)));
  if (refused) return usage(fmt::format("{}; see `{} --help`", *refused, full_name(*chosen->app)));
  if (job && ranks == Ranks::none)
    return usage(fmt::format("{} starts its runs itself: start it without {}", full_name(*chosen->app), job->launcher));
  if (silent && ranks != Ranks::together) return {};
  if (app.count("--version") > 0) return print(fmt::format("troupe {}\n", TROUPE_VERSION));
  if (chosen->action) return chosen->action();
  return usage(fmt::format("which subcommand? see `{} --help`", full_name(*chosen->app)));
}

}  // namespace

int run(int argc, const char* const* argv) {
  // A write beyond `ulimit -f` then returns an error, which names the file, instead of ending the process.
  std::signal(SIGXFSZ, SIG_IGN);
  core::Result<void> result;
  bool silent = false;
  try {
    result = dispatch(Words(argv + std::min(argc, 1), argv + argc), silent);
  } catch (const std::bad_alloc&) {
    result = core::fail(core::Errc::out_of_memory, "memory ran out: use a smaller data.batch or fewer workers");
  } catch (const std::exception& error) {
    result = core::fail(core::Errc::internal, fmt::format("internal error: {}", error.what()));
  }
  if (result) return 0;
  std::signal(SIGPIPE, SIG_IGN);  // what read the output may have ended: the exit code counts all the same
  // Rank 0 finds the same and says it. The launcher would end it before, if another rank failed first.
  if (silent && result.error().code == core::Errc::usage) return 0;
  if (!silent) tell(fmt::format("troupe: {}\n", one_line(result.error().message)));
  return core::exit_code(result.error().code);
}

}  // namespace troupe::apps
