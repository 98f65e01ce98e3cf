#include "apps/arguments/config.hpp"

#include <utility>

namespace troupe::apps {

CLI::Option* add_set(CLI::App& app, std::vector<std::string>& overrides) {
  return app.add_option("--set", overrides, "set a key of the configuration; the value is TOML or a bare word")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

core::Result<experiment::Settings> load_settings(const std::string& path, const std::vector<std::string>& overrides,
                                                 experiment::Use use) {
  // A run of the user's own program (model.command) has no data set of Troupe's.
  auto with_numbers = overrides;
  with_numbers.insert(with_numbers.begin(), "data.name=numbers");
  if (auto program = core::Config::load(experiment::schema(), path, with_numbers);
      program && !program->get(nn::model_table()).command.empty())
    return experiment::resolve(std::move(*program), use);
  return core::Config::load(experiment::schema(), path, overrides).and_then([use](core::Config config) {
    return experiment::resolve(std::move(config), use);
  });
}

}  // namespace troupe::apps
