/// A subcommand of `troupe`: its place in the help, its arguments, and its action. Thread rule: the main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/error.hpp"

namespace troupe::apps {

/// Runs a command after its arguments were parsed. An Error becomes one line on standard error and an exit code.
using Action = std::function<core::Result<void>()>;

/// Help that follows a command's own: about `topic` (`troupe train --help data`), or an overview when that is empty. Errc::usage: no
/// such topic.
using Appendix = std::function<core::Result<std::string>(std::string_view topic, std::size_t columns)>;

/// Which ranks execute a command that mpirun or srun has started.
enum class Ranks : std::uint8_t {
  first,     // rank 0 alone: what it prints is printed once
  each,      // every rank for itself: it is about its own host
  together,  // all, as one run
  none,      // the command starts processes of its own
};

struct Command {
  std::string name;
  std::string summary;                       // one line
  std::string examples;                      // whole lines, at the top of the help
  std::function<Action(CLI::App&)> declare;  // adds flags and arguments; null for a command with only subcommands
  std::vector<Command> subcommands = {};
  Appendix appendix = nullptr;  // null: nothing
  Ranks ranks = Ranks::first;
  bool hidden = false;  // started by other commands: help does not list it
};

// One file each: apps/commands/<name>.cpp.
[[nodiscard]] Command supervise();  // serve/supervise.cpp
[[nodiscard]] Command train();
[[nodiscard]] Command launch();
[[nodiscard]] Command simulate();
[[nodiscard]] Command check();
[[nodiscard]] Command eval();
[[nodiscard]] Command predict();
[[nodiscard]] Command export_model();  // export.cpp: `export` is a word of C++
[[nodiscard]] Command grid();
[[nodiscard]] Command plot();
[[nodiscard]] Command compare();
[[nodiscard]] Command replay();
[[nodiscard]] Command strategies();
[[nodiscard]] Command models();
[[nodiscard]] Command node();
[[nodiscard]] Command nodes();
[[nodiscard]] Command serve();  // serve/serve.cpp
[[nodiscard]] Command top();    // live/top.cpp
[[nodiscard]] Command watch();  // live/watch.cpp
[[nodiscard]] Command certs();
[[nodiscard]] Command doctor();
[[nodiscard]] Command completion();  // commands/shell/
[[nodiscard]] Command man();         // commands/shell/
[[nodiscard]] Command bench();
[[nodiscard]] Command bench_device();    // of bench
[[nodiscard]] Command bench_exchange();  // of bench
[[nodiscard]] Command data_sets();       // data.cpp: `data` is a namespace
[[nodiscard]] Command runs();            // its subcommands: commands/runs/runs.hpp
[[nodiscard]] Command data_fetch();      // of data
[[nodiscard]] Command data_inspect();    // of data
[[nodiscard]] Command data_convert();    // of data
[[nodiscard]] Command data_mean();       // of data

}  // namespace troupe::apps
