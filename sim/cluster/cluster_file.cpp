#include "sim/cluster/cluster_file.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "core/text/read_text.hpp"
#include "sim/cluster/cluster_tables.hpp"

namespace troupe::sim {
namespace {

/// Names of the repeatable sections, in file order.
struct Names {
  std::vector<std::string> hosts, models, slow, losses;
};

std::vector<std::string> names_of(const toml::table& document, std::string_view section) {
  const auto* all = document[section].as_table();
  if (all == nullptr) return {};
  std::vector<std::pair<toml::source_index, std::string>> found;
  for (const auto& [name, node] : *all)
    if (node.is_table()) found.emplace_back(name.source().begin.line, std::string(name.str()));
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& [line, name] : found) names.push_back(std::move(name));
  return names;
}

/// None for invalid TOML: the real parser reports why.
std::optional<Names> names_in(std::string_view text) {
  try {
    const auto document = toml::parse(text);
    return Names{names_of(document, "hosts"), names_of(document, "models"), names_of(document, "slow"),
                 names_of(document, "loss")};
  } catch (const toml::parse_error&) {
    return std::nullopt;
  }
}

core::Schema schema_of(const Names& names) {
  core::Schema schema;
  for (const auto& name : names.hosts) schema.add(hosts_table(name));
  schema.add(network_table());
  schema.add(servers_table());
  schema.add(steps_table());
  schema.add(stragglers_table());
  for (const auto& name : names.slow) schema.add(slow_table(name));
  schema.add(failures_table());
  for (const auto& name : names.losses) schema.add(loss_table(name));
  schema.add(collectives_table());
  schema.add(collective_speed_table());
  for (std::size_t i = 1; i < kAlgorithms; ++i) schema.add(algorithm_table(static_cast<Algorithm>(i)));
  for (const auto& name : names.models) schema.add(models_table(name));
  return schema;
}

core::Result<void> check_hosts(const ClusterFile& file, const std::string& name, const HostsConfig& config) {
  const auto refuse = [&](const char* key, std::string_view message) {
    const auto full = fmt::format("hosts.{}.{}", name, key);
    return core::fail(core::Errc::config, fmt::format("{}: {}: {}", file.where(full), full, message));
  };
  std::vector<const char*> given;
  if (config.step_ms > 0) given.push_back("step_ms");
  if (config.image_ms > 0) given.push_back("image_ms");
  if (!config.steps_ms.empty()) given.push_back("steps_ms");
  if (!config.profile.empty()) given.push_back("profile");
  if (given.size() > 1)
    return refuse(given[1], fmt::format("{} says how long steps take already: give one of step_ms, image_ms, steps_ms "
                                        "and profile",
                                        given[0]));
  if (!config.model.empty() && !config.profile.empty())
    return refuse("model", "a profile names its model itself: leave model out");
  if (config.step_sigma > 0 && config.step_ms == 0 && config.image_ms == 0)
    return refuse("step_sigma", "needs step_ms or image_ms, the mean that steps vary around");
  return {};
}

}  // namespace

std::string ClusterFile::where(const std::string& key) const {
  auto place = source.where(key);
  return place == "default" ? origin : place;
}

core::Result<ModelSizeConfig> ClusterFile::model(const std::string& name) const {
  std::string known;
  for (const auto& [model, config] : models) {
    if (model == name) return config;
    known += (known.empty() ? "" : ", ") + model;
  }
  return core::fail(core::Errc::config, fmt::format("{}: no [models.{}]: {}", origin, name,
                                                    known.empty() ? "there are none" : "there are " + known));
}

core::Result<ClusterFile> parse_cluster(std::string_view text, const std::string& origin,
                                        const std::vector<std::string>& overrides) {
  const auto found = names_in(text);
  const auto names = found.value_or(Names{});
  if (found && names.hosts.empty())
    return core::fail(core::Errc::config,
                      fmt::format("{}: no hosts: write a section [hosts.NAME] per kind of machine", origin));
  auto config = core::Config::parse(schema_of(names), text, origin, overrides, "--cluster-set");
  if (!config) return tl::unexpected(std::move(config.error()));
  ClusterFile file;
  file.origin = origin;
  file.source = std::move(*config);
  for (const auto& name : names.hosts) {
    file.hosts.push_back({name, file.source.get(hosts_table(name))});
    if (auto good = check_hosts(file, name, file.hosts.back().config); !good)
      return tl::unexpected(std::move(good.error()));
  }
  for (const auto& name : names.models) file.models.push_back({name, file.source.get(models_table(name))});
  file.network = file.source.get(network_table());
  file.servers = file.source.get(servers_table());
  file.steps = file.source.get(steps_table());
  file.stragglers = file.source.get(stragglers_table());
  for (const auto& name : names.slow) file.slow.push_back({name, file.source.get(slow_table(name))});
  file.failures = file.source.get(failures_table());
  for (const auto& name : names.losses) file.losses.push_back({name, file.source.get(loss_table(name))});
  file.collectives = file.source.get(collectives_table());
  file.collectives.speed = file.source.get(collective_speed_table());
  for (std::size_t i = 1; i < kAlgorithms; ++i)
    file.algorithms[i] = file.source.get(algorithm_table(static_cast<Algorithm>(i)));
  return file;
}

core::Result<ClusterFile> load_cluster(const std::string& path, const std::vector<std::string>& overrides) {
  return core::read_text("cluster file", path).and_then([&](const std::string& text) {
    return parse_cluster(text, path, overrides);
  });
}

core::Schema cluster_keys() {
  const auto all = schema_of({{"NAME"}, {"NAME"}, {"NAME"}, {"NAME"}});
  core::Schema schema;
  for (const auto& option : all.options())
    if (!option.key.starts_with("collectives.") || option.key.find('.', sizeof("collectives.")) == std::string::npos)
      schema.add_option(option);  // an algorithm's own speeds repeat the keys of [collectives]
  return schema;
}

}  // namespace troupe::sim
