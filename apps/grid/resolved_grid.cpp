#include "apps/grid/resolved_grid.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "strategies/registry/registry.hpp"

namespace troupe::grid {
namespace {

using core::Config;
using core::Result;

/// Settings that are not part of a run's identity.
const std::vector<std::string> kAnonymous{"run.dir=\"grid\"", "run.name=\"run\""};

std::string toml_string(const std::string& text) { return core::to_toml(core::Value{text}); }

std::vector<std::string> with(std::vector<std::string> overrides, const std::vector<std::string>& more) {
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

/// Configuration errors name grid settings as "--set: KEY = …": replaces that with the place in the grid file.
core::Error at_the_grid(core::Error error, const Combination& combination, const GridFile& file) {
  constexpr std::string_view kOrigin = "--set: ";
  if (error.message.starts_with(kOrigin)) {
    const auto text = error.message.substr(kOrigin.size());
    for (const auto& choice : combination.choices)
      if (text.starts_with(choice.key + " ")) error.message = fmt::format("{}: {}", choice.where, text);
  }
  if (const auto described = describe(combination, file); !described.empty())
    error.message += fmt::format(" (in the run with {})", described);
  return error;
}

/// Makes each run of the grid, from combination to settings.
class Resolver {
 public:
  Resolver(GridFile file, const std::vector<std::string>& overrides, const Check& check)
      : overrides_(overrides), check_(check) {
    grid_.file = std::move(file);
  }

  Result<ResolvedGrid> make() {
    auto combinations = combine();
    if (!combinations) return tl::unexpected(std::move(combinations.error()));
    for (auto& combination : *combinations) {
      auto added = add(std::move(combination));
      if (!added) return tl::unexpected(std::move(added.error()));
    }
    if (grid_.runs.empty())
      return core::fail(core::Errc::config, fmt::format("{}: [[exclude]] leaves no run", grid_.file.path));
    return name_all().map([&] { return std::move(grid_); });
  }

 private:
  Result<std::vector<Combination>> combine() {
    std::vector<std::string> strategies;
    for (const auto& base : grid_.file.bases) {
      auto config = Config::load(experiment::schema(), base, overrides_);
      if (!config) return tl::unexpected(std::move(config.error()));
      strategies.push_back(config->get(strategies::strategy_table()).name);
    }
    return expand(grid_.file, strategies);
  }

  Result<Config> load(const Combination& combination, const std::vector<std::string>& more) const {
    std::vector<std::string> all = overrides_;
    for (const auto& choice : combination.choices) all.push_back(choice.key + "=" + choice.value);
    return Config::load(experiment::schema(), grid_.file.bases[combination.base], with(std::move(all), more));
  }

  Result<void> add(Combination combination) {
    auto config = load(combination, kAnonymous);
    if (!config) return tl::unexpected(at_the_grid(std::move(config.error()), combination, grid_.file));
    const auto described = combination;
    std::erase_if(combination.choices, [&](const Choice& choice) {
      return std::ranges::find(config->unused(), choice.key) != config->unused().end();
    });
    GridRun run{{}, std::move(combination), {}, config->to_toml()};
    if (!identities_.insert(run.identity).second) {
      ++grid_.merged;
      return {};
    }
    auto settings = experiment::resolve(std::move(*config));
    if (!settings) return tl::unexpected(at_the_grid(std::move(settings.error()), described, grid_.file));
    run.settings = std::move(*settings);
    if (check_)
      if (auto good = check_(run.settings); !good)
        return tl::unexpected(at_the_grid(std::move(good.error()), described, grid_.file));
    grid_.runs.push_back(std::move(run));
    return {};
  }

  /// Last: names and directories depend on the keys that vary among the remaining runs.
  Result<void> name_all() {
    std::vector<Combination> combinations;
    for (const auto& run : grid_.runs) combinations.push_back(run.combination);
    grid_.varied = varied_keys(combinations);
    std::map<std::string, int> taken;
    for (auto& run : grid_.runs) {
      run.name = name_of(run.combination, grid_.varied, grid_.file, grid_.file.name);
      if (const int count = ++taken[run.name]; count > 1) run.name += fmt::format("~{}", count);
      auto config = load(run.combination, {"run.name=" + toml_string(run.name)});
      if (!config) return tl::unexpected(std::move(config.error()));
      if (grid_.directory.empty())
        grid_.directory = (std::filesystem::path(config->get(experiment::run_table()).dir) / grid_.file.name).string();
      auto settled =
          load(run.combination, {"run.name=" + toml_string(run.name), "run.dir=" + toml_string(grid_.directory)});
      if (!settled) return tl::unexpected(std::move(settled.error()));
      auto settings = experiment::resolve(std::move(*settled));
      if (!settings) return tl::unexpected(std::move(settings.error()));
      run.settings = std::move(*settings);
    }
    return {};
  }

  const std::vector<std::string>& overrides_;
  const Check& check_;
  ResolvedGrid grid_;
  std::set<std::string> identities_;
};

}  // namespace

Result<ResolvedGrid> resolve(GridFile file, const std::vector<std::string>& overrides, const Check& check) {
  if (auto fixed = fix(file, overrides); !fixed) return tl::unexpected(std::move(fixed.error()));
  return Resolver(std::move(file), overrides, check).make();
}

Result<GridRun> resolve_run(const GridFile& file, const std::vector<std::string>& overrides,
                            std::vector<Choice> choices, const std::string& name, const std::string& directory,
                            const std::vector<std::string>& unnamed, const Check& check) {
  GridRun run{name, {0, std::move(choices)}, {}, {}};
  const auto load = [&](const std::vector<std::string>& more) {
    auto all = overrides;
    for (const auto& choice : run.combination.choices) all.push_back(choice.key + "=" + choice.value);
    return Config::load(experiment::schema(), file.bases.front(), with(std::move(all), more));
  };
  const auto refuse = [&](core::Error error) {
    return tl::unexpected(at_the_grid(std::move(error), run.combination, file));
  };
  const auto anonymous = load(with(kAnonymous, unnamed));
  if (!anonymous) return refuse(anonymous.error());
  run.identity = anonymous->to_toml();
  auto config = load({"run.name=" + toml_string(name), "run.dir=" + toml_string(directory)});
  if (!config) return refuse(std::move(config.error()));
  auto settings = experiment::resolve(std::move(*config));
  if (!settings) return refuse(std::move(settings.error()));
  run.settings = std::move(*settings);
  if (check)
    if (auto good = check(run.settings); !good) return refuse(std::move(good.error()));
  return run;
}

Result<std::string> identity_of(const std::string& config_file, const std::vector<std::string>& unnamed) {
  return Config::load(experiment::schema(), config_file, with(kAnonymous, unnamed)).map([](const Config& config) {
    return config.to_toml();
  });
}

}  // namespace troupe::grid
