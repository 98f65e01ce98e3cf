/// The cluster file: machines, network and faults, as TOML (docs/formats/cluster.md). The options machinery of all configurations reads
/// it, so errors name file, line and the nearest known key. Repeatable sections have a name: [hosts.NAME], [models.NAME], [slow.NAME],
/// [loss.NAME].
#pragma once

#include <string>
#include <vector>

#include "core/config/config.hpp"
#include "sim/cluster/cluster.hpp"

namespace troupe::sim {

/// Section [hosts.NAME]: a kind of host.
struct HostsConfig {
  std::int64_t count = 1;
  std::int64_t devices = 1;
  double step_ms = 0;
  double image_ms = 0;
  double step_sigma = 0;
  std::string model;  // of step_ms, image_ms or steps_ms; empty: they hold for any model
  std::vector<double> steps_ms;
  std::vector<std::string> profile;
  double slowdown = 1;
  double memory_gb_per_s = 0;
  double gbit_per_s = 0;
  double device_gb_per_s = 0;
};

/// Section [models.NAME]: a model given by its size only.
struct ModelSizeConfig {
  std::int64_t parameters = 0;
  std::int64_t tensors = 1;
  double image_ms = 0;
  std::int64_t epoch_samples = 0;
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

/// Section [collectives], and [collectives.ALGORITHM] for one algorithm, where −1 means "as in [collectives]".
struct CollectiveSpeedConfig {
  double gb_per_s = 0;
  double sum_gb_per_s = 0;
  double convert_gb_per_s = 0;
  double memory_gb_per_s = 0;
};
struct CollectivesConfig {
  CollectiveSpeedConfig speed;
  bool tensor_by_tensor = false;
};

/// Section [steps].
struct StepsConfig {
  std::int64_t buckets = 1;
  double backward = 0.67;
};

/// Section [stragglers].
struct StragglersConfig {
  double probability = 0;
  double factor = 1;
};

/// Section [slow.NAME]: a period in which steps take longer.
struct SlowConfig {
  double factor = 1;
  double from_s = 0;
  double to_s = 0;
  std::vector<std::int64_t> workers;
};

/// Section [failures].
struct FailuresConfig {
  double mean_time_between_s = 0;
  double detection_s = 2;
  double rejoin_s = 0;
};

/// Section [loss.NAME]: the host of a worker dies.
struct LossConfig {
  std::int64_t worker = -1;
  double at_s = 0;
};

/// The contents of the file, each key checked; members are not placed yet.
struct ClusterFile {
  template <class Config>
  struct Named {
    std::string name;
    Config config;
  };
  std::string origin;                     // the file's name, for messages
  core::Config source;                    // where a key was set
  std::vector<Named<HostsConfig>> hosts;  // in the order of the file, like all of these
  std::vector<Named<ModelSizeConfig>> models;
  NetworkConfig network;
  ServersConfig servers;
  CollectivesConfig collectives;
  std::array<CollectiveSpeedConfig, kAlgorithms> algorithms;  // −1: as in collectives
  StepsConfig steps;
  StragglersConfig stragglers;
  std::vector<Named<SlowConfig>> slow;
  FailuresConfig failures;
  std::vector<Named<LossConfig>> losses;

  /// "cluster.toml:12" where the file set `key`, else the file's name.
  [[nodiscard]] std::string where(const std::string& key) const;
  /// Errc::config when there is no [models.`name`].
  [[nodiscard]] core::Result<ModelSizeConfig> model(const std::string& name) const;
};

/// Reads `path`. Errc::config names file and line: invalid TOML, an unknown section or key (with the nearest known one), a value that its
/// rule rejects, no hosts, more than one source of step times.
[[nodiscard]] core::Result<ClusterFile> load_cluster(const std::string& path,
                                                     const std::vector<std::string>& overrides = {});
/// The same from text; `origin` is the file name in messages.
[[nodiscard]] core::Result<ClusterFile> parse_cluster(std::string_view text, const std::string& origin,
                                                      const std::vector<std::string>& overrides = {});

/// All sections and keys with defaults and rules, for help texts: [hosts.NAME] stands for every repeatable section of its kind. Without
/// [collectives.ar] and so on, which have the keys of [collectives].
[[nodiscard]] core::Schema cluster_keys();

}  // namespace troupe::sim
