/// From arguments to an exit code: finds the command, parses its flags, answers --help and --version, and reports an invalid argument on
/// one line with the nearest valid one.
#pragma once

namespace troupe::apps {

/// Runs the program. Exit codes: core::exit_code(). Call once, from the main thread.
[[nodiscard]] int run(int argc, const char* const* argv);

}  // namespace troupe::apps
