/// --directory-file, for programs that start runs and want to know where each is. Thread rule: the main thread declares it; any thread writes.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace troupe::apps {

void add_directory_file(CLI::App& app, std::string& file);

/// Replaces `file` by one with the line `directory`; nothing where `file` is empty. A failure is a warning on standard error: it must not
/// end a run.
void write_directory_file(const std::string& file, const std::string& directory);

}  // namespace troupe::apps
