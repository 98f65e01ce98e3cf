/// A subcommand of `troupe`: its place in the help, its arguments, and its action. Thread rule: the main thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/error.hpp"

namespace troupe::apps {

/// Runs a command after its arguments were parsed. An Error becomes one line on standard error and an exit code.
using Action = std::function<core::Result<void>()>;

struct Command {
  std::string name;
  std::string summary;                       // one line
  std::string examples;                      // whole lines, at the top of the help
  std::function<Action(CLI::App&)> declare;  // adds flags and arguments; null for a command with only subcommands
  std::vector<Command> subcommands = {};
  std::function<std::string()> appendix = nullptr;  // at the end of the help; null: nothing
};

// One file each: apps/commands/<name>.cpp.
[[nodiscard]] Command train();
[[nodiscard]] Command simulate();
[[nodiscard]] Command check();
[[nodiscard]] Command eval();
[[nodiscard]] Command grid();
[[nodiscard]] Command plot();
[[nodiscard]] Command compare();
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
