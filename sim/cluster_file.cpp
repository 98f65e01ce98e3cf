#include "sim/cluster_file.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "sim/cluster_tables.hpp"

namespace troupe::sim {
namespace {

core::Schema schema_of(const std::vector<std::string>& hosts) {
  core::Schema schema;
  for (const auto& name : hosts) schema.add(hosts_table(name));
  schema.add(network_table());
  schema.add(servers_table());
  return schema;
}

/// The names of [hosts.NAME], in the order of the file. Nothing for a file that is no TOML: the real reader says why.
std::vector<std::string> host_names(std::string_view text) {
  std::vector<std::pair<toml::source_index, std::string>> found;
  try {
    const auto document = toml::parse(text);
    const auto* hosts = document["hosts"].as_table();
    if (hosts == nullptr) return {};
    for (const auto& [name, node] : *hosts)
      if (node.is_table()) found.emplace_back(name.source().begin.line, std::string(name.str()));
  } catch (const toml::parse_error&) {
    return {};
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& [line, name] : found) names.push_back(std::move(name));
  return names;
}

core::Result<void> check_hosts(const ClusterFile& file, const ClusterFile::Hosts& hosts) {
  const auto refuse = [&](const std::string& key, std::string_view message) {
    return core::fail(core::Errc::config, fmt::format("{}: {}: {}", file.where(key), key, message));
  };
  const auto key = [&](const char* name) { return fmt::format("hosts.{}.{}", hosts.name, name); };
  const auto& c = hosts.config;
  if (c.step_ms > 0 && !c.steps_ms.empty())
    return refuse(key("steps_ms"), "give either step_ms or a list of measured times, not both");
  if (c.step_sigma > 0 && c.step_ms == 0)
    return refuse(key("step_sigma"), "needs step_ms, the mean of the log-normal times");
  return {};
}

}  // namespace

std::string ClusterFile::where(const std::string& key) const {
  auto place = source.where(key);
  return place == "default" ? origin : place;
}

core::Result<ClusterFile> parse_cluster(std::string_view text, const std::string& origin) {
  const auto names = host_names(text);
  auto config = core::Config::parse(schema_of(names), text, origin, {});
  if (!config) return tl::unexpected(std::move(config.error()));
  if (names.empty())
    return core::fail(core::Errc::config,
                      fmt::format("{}: no hosts: write a section [hosts.NAME] per kind of machine", origin));
  ClusterFile file{.origin = origin, .source = std::move(*config), .hosts = {}, .network = {}, .servers = {}};
  for (const auto& name : names) {
    file.hosts.push_back({name, file.source.get(hosts_table(name))});
    if (auto good = check_hosts(file, file.hosts.back()); !good) return tl::unexpected(std::move(good.error()));
  }
  file.network = file.source.get(network_table());
  file.servers = file.source.get(servers_table());
  return file;
}

core::Result<ClusterFile> load_cluster(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  errno = 0;
  if (stream) text << stream.rdbuf();
  if (!stream || stream.bad()) {
    const std::string why = std::generic_category().message(errno != 0 ? errno : ENOENT);
    return core::fail(core::Errc::config, fmt::format("cannot read cluster file {}: {}", path, why));
  }
  return parse_cluster(text.str(), path);
}

std::string cluster_help() { return schema_of({"NAME"}).help(); }

}  // namespace troupe::sim
