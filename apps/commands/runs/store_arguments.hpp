/// What the subcommands of `troupe runs` share. Thread rule: the main thread.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/error.hpp"
#include "store/run_store.hpp"

namespace troupe::apps {

/// --dir
void add_directory(CLI::App& app, std::string& directory);

/// Says on standard error what the store remarks, and how many directories are no runs.
[[nodiscard]] core::Result<void> say_remarks(store::RunStore& store);

/// Opens the store and says on standard error what it remarks, and how many directories are no runs.
[[nodiscard]] core::Result<store::RunStore> open_store(const std::string& directory);

/// The same, and what the store answers.
template <class Answer>
[[nodiscard]] core::Result<Answer> ask_store(const std::string& directory,
                                             const std::function<core::Result<Answer>(store::Database&)>& question) {
  auto asked = store::open_and_ask(directory, question);
  if (!asked) return tl::unexpected(asked.error());
  if (auto said = say_remarks(asked->store); !said) return tl::unexpected(said.error());
  return std::move(asked->answer);
}

/// A run that arguments name.
struct NamedRun {
  std::int64_t id = 0;
  std::string path;  // relative to the store's directory
};

/// The run whose directory is `given` (also without the store's directory before it), or the only run of that name. Errc::config: none, or
/// several.
[[nodiscard]] core::Result<NamedRun> find_run(store::Database& database, const std::string& directory,
                                              const std::string& given);

/// Columns aligned, two blanks between them; the first row is the heading. Wide characters take two columns.
[[nodiscard]] std::string aligned_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace troupe::apps
