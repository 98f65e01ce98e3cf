/// The cluster file: machines, network and what goes wrong, as TOML (docs/formats/cluster.md). Read with the options machinery of
/// every configuration: a section [hosts.NAME] per kind of host, so errors name file, line and the nearest known key.
#pragma once

#include <string>
#include <vector>

#include "core/config.hpp"
#include "sim/cluster.hpp"

namespace troupe::sim {

/// Section [hosts.NAME].
struct HostsConfig {
  std::int64_t count = 1;
  std::int64_t devices = 1;
  double step_ms = 0;
  double step_sigma = 0;
  std::vector<double> steps_ms;
  double slowdown = 1;
  double memory_gb_per_s = 0;
  double gbit_per_s = 0;
};

/// Section [network].
struct NetworkConfig {
  double latency_us = 0;
  double per_message_us = 0;
  double gbit_per_s = 0;
  double local_latency_us = 0;
  double local_gb_per_s = 0;
};

/// Section [servers].
struct ServersConfig {
  std::string placement = "colocated";
  std::string hosts;
  double per_request_us = 0;
  double memory_gb_per_s = 0;
};

/// What the file says, checked line by line; nobody has a place yet.
struct ClusterFile {
  struct Hosts {
    std::string name;
    HostsConfig config;
  };
  std::string origin;        // the file's name, for messages
  core::Config source;       // where a key was set
  std::vector<Hosts> hosts;  // in the order of the file
  NetworkConfig network;
  ServersConfig servers;
  /// "cluster.toml:12" where the file set `key`, else the file's name.
  [[nodiscard]] std::string where(const std::string& key) const;
};

/// Reads `path`. Errc::config names file and line: what is no TOML, an unknown section or key (with the nearest), a value that its
/// rule refuses, no hosts, hosts without step times.
[[nodiscard]] core::Result<ClusterFile> load_cluster(const std::string& path);
/// The same from text; `origin` stands for the file in messages.
[[nodiscard]] core::Result<ClusterFile> parse_cluster(std::string_view text, const std::string& origin);

/// A place for every worker and server. Errc::config when there are more workers than devices, or no hosts for dedicated servers.
[[nodiscard]] core::Result<Cluster> place(const ClusterFile& file, std::uint32_t workers, std::uint32_t servers);

/// Every section and key with default and rule, for help texts; hosts' keys stand under [hosts.NAME].
[[nodiscard]] std::string cluster_help();

}  // namespace troupe::sim
