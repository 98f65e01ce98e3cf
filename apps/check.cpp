#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "actors/run.hpp"
#include "apps/backends.hpp"
#include "apps/command.hpp"
#include "apps/config_arguments.hpp"
#include "apps/output.hpp"

namespace troupe::apps {
namespace {

struct Arguments {
  std::string config;
  std::vector<std::string> overrides;
  bool open_data = false;
};

core::Result<void> run_check(const Arguments& arguments) {
  const auto settings = load_settings(arguments.config, arguments.overrides);
  if (!settings) return tl::unexpected(settings.error());
  const auto backend = make_backend(settings->cluster.device);
  if (!backend) return tl::unexpected(backend.error());
  const auto checked = actors::check_run(*settings, **backend, arguments.open_data);
  if (!checked) return tl::unexpected(checked.error());
  for (const auto& note : checked->notes)
    fmt::print(stderr, "{}{}\n", note.level == experiment::Note::Level::warning ? "warning: " : "", note.text);
  return print(fmt::format("{}{}: good\n", checked->text, arguments.config));
}

Action declare(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("CONFIG", arguments->config, "configuration file (TOML)")->required();
  add_set(app, arguments->overrides);
  app.add_flag("--data", arguments->open_data, "open the data set too");
  return [arguments] { return run_check(*arguments); };
}

}  // namespace

Command check() {
  return {.name = "check",
          .summary = "check a configuration without training",
          .examples =
              "  troupe check configs/mnist-easgd.toml\n"
              "  troupe check configs/mnist-easgd.toml --data --set data.path=elsewhere/mnist\n",
          .declare = declare};
}

}  // namespace troupe::apps
