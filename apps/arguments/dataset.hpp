/// The data set that a `troupe data` command is about: of a configuration, or named with --set alone. Thread rule: the main thread.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/error.hpp"
#include "data/config.hpp"

namespace troupe::apps {

struct DatasetArguments {
  std::string config;
  std::vector<std::string> overrides;
};

/// Adds CONFIG and --set.
void add_dataset(CLI::App& app, DatasetArguments& arguments);

/// Its data section, and the run's seed, which decides what data.validation holds out. Without CONFIG --set must have data.name.
/// Errc::config; usage: neither names a data set, or CONFIG is a directory.
struct ChosenDataset {
  data::DataConfig data;
  std::uint64_t seed = 1;
};
[[nodiscard]] core::Result<ChosenDataset> chosen_dataset(const DatasetArguments& arguments);

}  // namespace troupe::apps
