#include "apps/arguments/dataset.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "apps/arguments/config.hpp"
#include "experiment/settings.hpp"

namespace troupe::apps {

void add_dataset(CLI::App& app, DatasetArguments& arguments) {
  app.add_option("CONFIG", arguments.config,
                 "a configuration (TOML), of which the section data counts; or --set alone");
  add_set(app, arguments.overrides);
}

core::Result<ChosenDataset> chosen_dataset(const DatasetArguments& arguments) {
  std::error_code ignored;
  if (std::filesystem::is_directory(arguments.config, ignored))
    return core::fail(core::Errc::usage,
                      fmt::format("{0} is a directory, and CONFIG a file: pictures in folders by class are --set "
                                  "data.name=folder --set data.path={0} --set data.resize=SIDE",
                                  arguments.config));
  const auto names = [](const std::string& text) { return text.starts_with("data.name"); };
  if (arguments.config.empty() && std::ranges::none_of(arguments.overrides, names))
    return core::fail(core::Errc::usage,
                      "which data set? Give a CONFIG, or --set data.name=NAME; see `troupe train --help data.name`");
  auto config =
      arguments.config.empty()
          ? core::Config::parse(experiment::schema(), "[model]\nname = \"mlp\"\n", "no CONFIG", arguments.overrides)
          : core::Config::load(experiment::schema(), arguments.config, arguments.overrides);
  if (!config) return tl::unexpected(std::move(config.error()));
  const auto settings = experiment::resolve(std::move(*config), experiment::Use::remains);
  if (!settings) return tl::unexpected(settings.error());
  return ChosenDataset{settings->data, static_cast<std::uint64_t>(settings->run.seed)};
}

}  // namespace troupe::apps
