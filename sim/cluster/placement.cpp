#include "sim/cluster/placement.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/cluster/recorded.hpp"
#include "sim/engine/virtual_time.hpp"

namespace troupe::sim {
namespace {

Duration microseconds(double us) { return nanoseconds(1e3 * us); }

StepTimes per_image(double ms, double sigma) { return {.mean_ns = 1e6 * ms, .per_image = true, .sigma = sigma}; }

/// The key with which the hosts say how long a step takes; empty: none.
std::string key_of_times(const HostsConfig& hosts) {
  if (hosts.image_ms > 0) return "image_ms";
  if (!hosts.steps_ms.empty()) return "steps_ms";
  if (!hosts.profile.empty()) return "profile";
  return hosts.step_ms > 0 ? "step_ms" : "";
}

/// A step of one model says nothing of another model's.
core::Result<void> check_model(const ClusterFile& file, const ClusterFile::Named<HostsConfig>& hosts,
                               const Placing& placing) {
  const auto& of = hosts.config.model;
  const auto key = key_of_times(hosts.config);
  if (of.empty() || placing.model.empty() || of == placing.model || key.empty()) return {};
  const auto full = fmt::format("hosts.{}.{}", hosts.name, key);
  return core::fail(core::Errc::config,
                    fmt::format("{}: {} is the time of {}, and this run trains {}: add --measure to time {} on this "
                                "machine, or --from FILE with a profile of it (`troupe bench step CONFIG --profile "
                                "FILE`)",
                                file.where(full), full, of, placing.model, placing.model));
}

/// Step times of the ranks that use profile `index` of `hosts`.
core::Result<StepTimes> profiled(const ClusterFile& file, const ClusterFile::Named<HostsConfig>& hosts,
                                 const Placing& placing, std::size_t index) {
  const auto& path = hosts.config.profile[index];
  auto profile = load_profile(path);
  const auto key = fmt::format("hosts.{}.profile", hosts.name);
  if (!profile)
    return core::fail(profile.error().code, fmt::format("{}: {}: {}", file.where(key), key, profile.error().message));
  auto batch = profile->batch;
  for (auto w = index; w < placing.batches.size() && batch == profile->batch; w += hosts.config.profile.size())
    batch = placing.batches[w] / placing.micro_batches;
  const auto fits = check_profile(*profile, placing, batch, fmt::format("{}: {}", file.where(key), path));
  if (!fits) return tl::unexpected(fits.error());
  return measured(profile->steps_ms, placing.micro_batches);
}

core::Result<std::vector<StepTimes>> step_times(const ClusterFile& file, const ClusterFile::Named<HostsConfig>& hosts,
                                                const Placing& placing) {
  const auto& config = hosts.config;
  if (!placing.recorded.empty()) return placing.recorded;
  if (placing.image_ms > 0) return std::vector{per_image(placing.image_ms, config.step_sigma)};
  if (auto same = check_model(file, hosts, placing); !same) return tl::unexpected(std::move(same.error()));
  if (config.image_ms > 0) return std::vector{per_image(config.image_ms, config.step_sigma)};
  if (!config.steps_ms.empty()) return std::vector{measured(config.steps_ms)};
  if (config.profile.empty())
    return std::vector{StepTimes{.mean_ns = 1e6 * config.step_ms, .sigma = config.step_sigma}};
  std::vector<StepTimes> profiles;
  for (std::size_t i = 0; i < config.profile.size(); ++i) {
    auto times = profiled(file, hosts, placing, i);
    if (!times) return tl::unexpected(std::move(times.error()));
    profiles.push_back(*std::move(times));
  }
  return profiles;
}

/// The algorithm's own speed if set, else the general one.
CollectiveSpeed collective_speed(const CollectiveSpeedConfig& all, const CollectiveSpeedConfig& own) {
  const auto either = [](double own, double all) { return gb_per_s(own >= 0 ? own : all); };
  return {.rate = either(own.gb_per_s, all.gb_per_s),
          .sum = either(own.sum_gb_per_s, all.sum_gb_per_s),
          .convert = either(own.convert_gb_per_s, all.convert_gb_per_s),
          .memory = either(own.memory_gb_per_s, all.memory_gb_per_s)};
}

bool dedicated(const ClusterFile& file, const Placing& placing) {
  const bool said = placing.placement.empty() || file.source.where("servers.placement") != "default";
  return (said ? file.servers.placement : placing.placement) == "dedicated";
}

core::Result<void> place_workers(const ClusterFile& file, const Placing& placing, Cluster& cluster) {
  const auto workers = placing.workers;
  HostId host = 0;
  for (std::uint32_t k = 0; k < cluster.kinds.size(); ++k) {
    const auto& kind = cluster.kinds[k];
    const bool serves = dedicated(file, placing) && kind.name == file.servers.hosts;
    const auto before = cluster.workers.size();
    for (std::uint32_t h = 0; h < kind.count; ++h, ++host) {
      for (std::uint32_t d = 0; d < kind.devices && !serves && cluster.workers.size() < workers; ++d)
        cluster.workers.push_back({.host = host, .kind = k});
    }
    if (cluster.workers.size() > before && kind.steps.front().expected_ns() <= 0)
      return core::fail(core::Errc::config,
                        fmt::format("{}: [hosts.{}] says nothing of the time that a step takes: set step_ms, image_ms, "
                                    "steps_ms or profile",
                                    file.where(fmt::format("hosts.{}.count", kind.name)), kind.name));
  }
  if (cluster.workers.size() == workers) return {};
  return core::fail(core::Errc::config,
                    fmt::format("{}: {} workers do not fit on {} devices: raise count or devices of a [hosts.NAME], or "
                                "lower the number of workers",
                                file.origin, workers, cluster.workers.size()));
}

/// Hosts that have workers, the least loaded first.
std::vector<HostId> homes_of(const std::vector<WorkerPlacement>& workers) {
  std::map<HostId, std::size_t> load;
  for (const auto& worker : workers) ++load[worker.host];
  std::vector<HostId> homes;
  for (const auto& [host, count] : load) homes.push_back(host);
  std::stable_sort(homes.begin(), homes.end(), [&](HostId a, HostId b) { return load[a] < load[b]; });
  return homes;
}

core::Result<void> place_servers(const ClusterFile& file, const Placing& placing, Cluster& cluster) {
  const auto servers = placing.servers;
  std::vector<HostId> homes;
  if (dedicated(file, placing)) {
    for (HostId host = 0; host < cluster.hosts.size(); ++host)
      if (cluster.kinds[cluster.hosts[host].kind].name == file.servers.hosts) homes.push_back(host);
    if (homes.empty() && servers > 0)
      return core::fail(core::Errc::config,
                        fmt::format("{}: servers.hosts = \"{}\": dedicated servers need the NAME of a [hosts.NAME]",
                                    file.where("servers.hosts"), file.servers.hosts));
  } else {
    homes = homes_of(cluster.workers);
  }
  for (std::uint32_t shard = 0; shard < servers; ++shard) cluster.servers.push_back(homes[shard % homes.size()]);
  return {};
}

core::Result<void> place_faults(const ClusterFile& file, std::uint32_t workers, Cluster& cluster) {
  const auto unknown = [&](const std::string& key, std::int64_t worker) {
    return core::fail(core::Errc::config,
                      fmt::format("{}: {} = {}: there are {} workers, from 0", file.where(key), key, worker, workers));
  };
  cluster.stragglers = {file.stragglers.probability, file.stragglers.factor};
  for (const auto& [name, config] : file.slow) {
    SlowSpell spell{.from = seconds(config.from_s),
                    .to = config.to_s > 0 ? seconds(config.to_s) : Duration::max(),
                    .factor = config.factor};
    for (const auto worker : config.workers) {
      if (worker >= workers) return unknown("slow." + name + ".workers", worker);
      spell.workers.push_back(static_cast<std::uint32_t>(worker));
    }
    cluster.spells.push_back(std::move(spell));
  }
  cluster.failures = {.mean_time = seconds(file.failures.mean_time_between_s),
                      .detection = seconds(file.failures.detection_s),
                      .rejoin = seconds(file.failures.rejoin_s)};
  for (const auto& [name, config] : file.losses) {
    if (config.worker >= workers) return unknown("loss." + name + ".worker", config.worker);
    cluster.failures.losses.push_back({static_cast<std::uint32_t>(config.worker), seconds(config.at_s)});
  }
  return {};
}

}  // namespace

core::Result<void> check_profile(const StepProfile& profile, const Placing& placing, std::int64_t batch,
                                 const std::string& where) {
  const bool other_size = profile.parameters > 0 && placing.parameters > 0 && profile.parameters != placing.parameters;
  const bool same_model = (placing.model.empty() || profile.model == placing.model) && !other_size;
  if (same_model && profile.batch == batch) return {};
  const auto size = [&](std::uint64_t parameters) {
    return other_size ? fmt::format(" ({} parameters)", parameters) : std::string();
  };
  return core::fail(core::Errc::config,
                    fmt::format("{} is of {}{} with batch {}, and this run has {}{} with batch {}: measure that with "
                                "`troupe bench step CONFIG --profile FILE`",
                                where, profile.model, size(profile.parameters), profile.batch, placing.model,
                                size(placing.parameters), batch));
}

std::string source_of_times(const ClusterFile& file, std::size_t kind) {
  const auto& [name, hosts] = file.hosts[kind];
  const auto key = key_of_times(hosts);
  const auto whose = key == "profile"      ? std::string()
                     : hosts.model.empty() ? ", for any model"
                                           : ", for " + hosts.model;
  return fmt::format("hosts.{}.{} of {}{}", name, key, file.origin, whose);
}

core::Result<Cluster> place(const ClusterFile& file, const Placing& placing) {
  Cluster cluster;
  const auto& network = file.network;
  for (const auto& hosts : file.hosts) {
    const auto& [name, config] = hosts;
    auto steps = step_times(file, hosts, placing);
    if (!steps) return tl::unexpected(std::move(steps.error()));
    const auto card = gbit_per_s(config.gbit_per_s > 0 ? config.gbit_per_s : network.gbit_per_s);
    const auto kind = static_cast<std::uint32_t>(cluster.kinds.size());
    cluster.kinds.push_back({.name = name,
                             .count = static_cast<std::uint32_t>(config.count),
                             .devices = static_cast<std::uint32_t>(config.devices),
                             .steps = std::move(*steps),
                             .slowdown = config.slowdown,
                             .memory = gb_per_s(config.memory_gb_per_s),
                             .device = gb_per_s(config.device_gb_per_s)});
    for (std::int64_t h = 0; h < config.count; ++h) cluster.hosts.push_back({kind, card});
  }
  cluster.network = {.latency = microseconds(network.latency_us),
                     .per_message = microseconds(network.per_message_us),
                     .local_latency = microseconds(network.local_latency_us),
                     .local = gb_per_s(network.local_gb_per_s)};
  cluster.server = {.memory = gb_per_s(file.servers.memory_gb_per_s),
                    .per_request = microseconds(file.servers.per_request_us)};
  for (std::size_t i = 1; i < kAlgorithms; ++i)
    cluster.collectives[i] = collective_speed(file.collectives.speed, file.algorithms[i]);
  cluster.tensor_by_tensor = file.collectives.tensor_by_tensor;
  cluster.buckets = static_cast<int>(file.steps.buckets);
  cluster.backward = file.steps.backward;
  if (auto placed = place_workers(file, placing, cluster); !placed) return tl::unexpected(std::move(placed.error()));
  if (auto placed = place_servers(file, placing, cluster); !placed) return tl::unexpected(std::move(placed.error()));
  if (auto placed = place_faults(file, placing.workers, cluster); !placed)
    return tl::unexpected(std::move(placed.error()));
  return cluster;
}

}  // namespace troupe::sim
