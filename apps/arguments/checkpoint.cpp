#include "apps/arguments/checkpoint.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "apps/arguments/config.hpp"
#include "experiment/directory/run_directory.hpp"
#include "nn/checkpoint/weights.hpp"

namespace troupe::apps {
namespace {

/// A checkpoint outside a run directory contains the configuration of its run.
core::Result<experiment::Settings> own_settings(const CheckpointArguments& arguments) {
  const auto loaded = nn::read_weights(arguments.path);
  if (!loaded) return tl::unexpected(loaded.error());
  if (!loaded->step)
    return core::fail(core::Errc::config,
                      fmt::format("{} was written by another program, and says nothing of its model "
                                  "and data: describe them with --config FILE",
                                  arguments.path));
  const auto text = loaded->file.metadata().find("config");
  if (text == loaded->file.metadata().end())
    return core::fail(core::Errc::config,
                      fmt::format("{} is in no run directory, and contains no configuration, as an older version wrote "
                                  "it: name its run's with --config FILE",
                                  arguments.path));
  return core::Config::parse(experiment::schema(), text->second, arguments.path, arguments.overrides)
      .and_then([](core::Config config) { return experiment::resolve(std::move(config), experiment::Use::remains); });
}

}  // namespace

void add_checkpoint(CLI::App& app, CheckpointArguments& arguments) {
  app.add_option(
         "CHECKPOINT|RUN_DIR", arguments.path,
         "a checkpoint file, a run's directory: its newest, or with --config a safetensors file of another program")
      ->required();
  app.add_option("--config", arguments.config,
                 "configuration (TOML) for the model and data, in place of the run's or of the one in the checkpoint")
      ->type_name("FILE");
  add_set(app, arguments.overrides);
}

core::Result<experiment::Settings> settings_of(const CheckpointArguments& arguments) {
  const auto from = [&](const std::string& file) {
    return load_settings(file, arguments.overrides, experiment::Use::remains);
  };
  if (!arguments.config.empty()) return from(arguments.config);
  const auto run = experiment::RunDirectory::containing(arguments.path);
  if (run) return from(run->config_file());
  std::error_code ignored;
  if (std::filesystem::is_regular_file(arguments.path, ignored)) return own_settings(arguments);
  return tl::unexpected(run.error());
}

}  // namespace troupe::apps
