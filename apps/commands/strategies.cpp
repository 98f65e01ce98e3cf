#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/command.hpp"
#include "apps/output.hpp"
#include "core/text/layout.hpp"
#include "core/text/nearest.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::apps {
namespace {

struct StrategiesArguments {
  std::string name;
  bool json = false;
};

core::Schema options_of(const strategies::StrategyInfo& info) {
  core::Schema schema;
  info.add_options(schema);
  return schema;
}

std::string json_line(const strategies::StrategyInfo& info) {
  using Json = nlohmann::ordered_json;
  Json options = Json::array();
  const auto schema = options_of(info);
  for (const auto& option : schema.options())
    options.push_back({{"key", option.key},
                       {"default", core::to_toml(option.default_value)},
                       {"rule", option.rule.text},
                       {"help", option.help}});
  return Json{{"name", info.name}, {"summary", info.summary}, {"options", options}}.dump() + "\n";
}

core::Result<void> run_strategies(const StrategiesArguments& arguments) {
  const auto columns = output_columns();
  std::string text;
  if (arguments.name.empty()) {
    std::size_t widest = 0;
    for (const auto& info : strategies::registry()) widest = std::max(widest, info.name.size());
    for (const auto& info : strategies::registry())
      text += arguments.json ? json_line(info) : core::list_row(info.name, info.summary, widest + 4, columns);
    return print(text);
  }
  const auto* info = strategies::find(arguments.name);
  if (info == nullptr) {
    std::vector<std::string> names;
    for (const auto& row : strategies::registry()) names.push_back(row.name);
    return core::fail(core::Errc::usage,
                      fmt::format("no strategy is called \"{}\"{}; `troupe strategies` lists them", arguments.name,
                                  core::nearest_hint(arguments.name, names, core::Quotes::no)));
  }
  return print(arguments.json
                   ? json_line(*info)
                   : fmt::format("{}\n\n{}",
                                 core::wrapped(fmt::format("{}: {}", info->name, info->summary), columns, 2, 0),
                                 options_of(*info).help(columns)));
}

Action declare_strategies(CLI::App& app) {
  const auto arguments = std::make_shared<StrategiesArguments>();
  app.add_option("STRATEGY", arguments->name, "show this strategy's options");
  app.add_flag("--json", arguments->json, "one line of JSON per strategy");
  return [arguments] { return run_strategies(*arguments); };
}

}  // namespace

Command strategies() {
  return {.name = "strategies",
          .summary = "list the ways in which workers stay together, and their options",
          .examples =
              "  troupe strategies\n"
              "  troupe strategies easgd\n",
          .declare = declare_strategies};
}

}  // namespace troupe::apps
