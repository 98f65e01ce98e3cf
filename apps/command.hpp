/// What a subcommand of `troupe` is: its place in the help, its arguments, and what it does. Thread rule: the main thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/error.hpp"

namespace troupe::apps {

/// Runs a command whose arguments have been parsed. The Error becomes one line on standard error and an exit code.
using Action = std::function<core::Result<void>()>;

struct Command {
  std::string name;
  std::string summary;                       // one line
  std::string examples;                      // whole lines, the first thing in the help
  std::function<Action(CLI::App&)> declare;  // adds flags and arguments; null for a command that only has subcommands
  std::vector<Command> subcommands = {};
  std::function<std::string()> appendix = nullptr;  // the last thing in the help; null: nothing
};

// One file each: apps/<name>.cpp.
[[nodiscard]] Command train();
[[nodiscard]] Command simulate();
[[nodiscard]] Command check();
[[nodiscard]] Command eval();
[[nodiscard]] Command grid();
[[nodiscard]] Command plot();
[[nodiscard]] Command replay();
[[nodiscard]] Command strategies();
[[nodiscard]] Command models();
[[nodiscard]] Command node();
[[nodiscard]] Command nodes();
[[nodiscard]] Command certs();
[[nodiscard]] Command doctor();
[[nodiscard]] Command bench();
[[nodiscard]] Command bench_exchange();  // of bench

}  // namespace troupe::apps
