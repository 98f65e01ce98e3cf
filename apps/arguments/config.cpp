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
  return core::Config::load(experiment::schema(), path, overrides).and_then([use](core::Config config) {
    return experiment::resolve(std::move(config), use);
  });
}

}  // namespace troupe::apps
