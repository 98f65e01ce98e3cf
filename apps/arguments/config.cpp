#include "apps/arguments/config.hpp"

#include <utility>

#include "core/text/read_text.hpp"
#include "experiment/directory/resumed_options.hpp"

namespace troupe::apps {

CLI::Option* add_set(CLI::App& app, std::vector<std::string>& overrides) {
  return app.add_option("--set", overrides, "set a key of the configuration; the value is TOML or a bare word")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

namespace {

/// A run of the user's own program (model.command) has no data set of Troupe's.
template <class Read>
core::Result<core::Config> config_by(const Read& read, const std::vector<std::string>& overrides) {
  auto with_numbers = overrides;
  with_numbers.insert(with_numbers.begin(), "data.name=numbers");
  if (auto program = read(with_numbers); program && !program->get(nn::model_table()).command.empty()) return program;
  return read(overrides);
}

}  // namespace

core::Result<core::Config> load_config(const std::string& path, const std::vector<std::string>& overrides) {
  const auto text = core::read_text("config", path);  // once: it may be a pipe
  if (!text) return tl::unexpected(text.error());
  return config_by([&](const auto& all) { return core::Config::parse(experiment::schema(), *text, path, all); },
                   overrides);
}

core::Result<experiment::Settings> load_settings(const std::string& path, const std::vector<std::string>& overrides,
                                                 experiment::Use use) {
  return load_config(path, overrides).and_then([use](core::Config config) {
    return experiment::resolve(std::move(config), use);
  });
}

std::vector<std::string> resume_overrides(const experiment::RunDirectory& run,
                                          const std::vector<std::string>& overrides) {
  const auto recorded = run.read_config(experiment::schema(), {});
  if (!recorded) return overrides;  // loading it for the run says why
  auto all = experiment::defaults_of_strategy(*recorded, overrides);
  all.insert(all.end(), overrides.begin(), overrides.end());
  return all;
}

core::Result<experiment::Settings> settings_without_file(const std::vector<std::string>& overrides,
                                                         experiment::Use use) {
  const auto read = [](const auto& all) { return core::Config::parse(experiment::schema(), "", "the command", all); };
  return config_by(read, overrides).and_then([use](core::Config config) {
    return experiment::resolve(std::move(config), use);
  });
}

}  // namespace troupe::apps
