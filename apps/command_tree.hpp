/// All subcommands of `troupe`, and their parsers: what the command line, completion and manual pages are made from. Thread rule: the main
/// thread.
#pragma once

#include <list>

#include <CLI/CLI.hpp>

#include "apps/command.hpp"

namespace troupe::apps {

/// `troupe` itself, with all subcommands.
[[nodiscard]] const Command& program();

/// A command with its parser.
struct Parsed {
  const Command* command;
  CLI::App* app;
  Action action;  // null: only its subcommands do something
};

/// Declares all commands for `app`, which parses `program()` then. Parents come before their subcommands. `app` outlives the result.
[[nodiscard]] std::list<Parsed> declare_all(CLI::App& app);

/// The subcommand `name` of `parent`; null: there is none.
[[nodiscard]] const Parsed* subcommand(const std::list<Parsed>& all, const Parsed& parent, std::string_view name);

}  // namespace troupe::apps
