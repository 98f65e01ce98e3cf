/// From arguments to an exit code: finds the command, parses its flags, answers `help`, --help and --version, and reports an invalid
/// argument on one line with the nearest valid one. Under mpirun or srun rank 0 alone executes what every rank would execute alike.
#pragma once

namespace troupe::apps {

/// Runs the program. Exit codes: core::exit_code(). Call once, from the main thread.
[[nodiscard]] int run(int argc, const char* const* argv);

}  // namespace troupe::apps
