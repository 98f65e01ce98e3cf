#include "apps/arguments/dataset.hpp"

#include <utility>

#include "apps/arguments/config.hpp"
#include "experiment/settings.hpp"

namespace troupe::apps {

void add_dataset(CLI::App& app, DatasetArguments& arguments) {
  app.add_option("CONFIG", arguments.config,
                 "a configuration (TOML), of which the section data counts; or --set alone");
  add_set(app, arguments.overrides);
}

core::Result<ChosenDataset> chosen_dataset(const DatasetArguments& arguments) {
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
