/// What the values of options and arguments can be, by the names that stand for them in the help: FILE, RUN_DIR, STRATEGY. The tables of
/// strategies, models, data sets and configuration keys are asked, so that nothing is listed twice. Thread rule: pure functions, except that
/// run_names() reads directories.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace troupe::apps {

/// A word that may follow. One that ends with "=" or an operator goes on with a value.
struct Candidate {
  std::string text;
  std::string help;  // a line; may be empty
  bool operator==(const Candidate&) const = default;
};

/// Which paths may follow, too; the shell completes them.
enum class Paths : std::uint8_t { none, directories, files };

struct ValueCandidates {
  std::vector<Candidate> words;
  Paths paths = Paths::none;
};

/// Values of `option` that begin with `begun`. `directory`: where the runs are. `options`: all of the command's, which decide whether a run
/// is named in the directory (those with --dir) or by its path.
[[nodiscard]] ValueCandidates values_of(const CLI::Option& option, const CLI::App& options, std::string_view begun,
                                        const std::string& directory);

/// Sections and keys that `--help` explains for this command; empty: it explains none.
[[nodiscard]] std::vector<Candidate> help_topics(const CLI::App& options, std::string_view begun);

/// Directories of runs in `directory`, relative to it, those in grids as well ("grid/run"); only those that begin with `begun`.
[[nodiscard]] std::vector<std::string> run_names(const std::string& directory, std::string_view begun);

}  // namespace troupe::apps
