/// From arguments to an exit code: finds the command, parses its flags, answers --help and --version, and says in one line
/// what is wrong with an argument, with the nearest one that exists.
#pragma once

namespace troupe::apps {

/// Runs the program. Exit codes: design §6. Call once, from the main thread.
[[nodiscard]] int run(int argc, const char* const* argv);

}  // namespace troupe::apps
