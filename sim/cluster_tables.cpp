#include "sim/cluster_tables.hpp"

namespace troupe::sim {

using core::at_least;
using core::between;

namespace {

constexpr double kMost = 1'000'000;

}  // namespace

core::Table<HostsConfig> hosts_table(const std::string& name) {
  return {"hosts." + name,
          {{"count", &HostsConfig::count, between(1, kMost), "hosts of this kind"},
           {"devices", &HostsConfig::devices, between(0, kMost), "workers that fit on one host"},
           {"step_ms", &HostsConfig::step_ms, at_least(0), "time of one step; 0: steps_ms, or none"},
           {"step_sigma", &HostsConfig::step_sigma, between(0, 5),
            "steps vary: log-normal with mean step_ms; deviation of the logarithm"},
           {"steps_ms", &HostsConfig::steps_ms, core::above(0), "measured times of steps: each step takes one of them"},
           {"slowdown", &HostsConfig::slowdown, between(0.001, 1000), "times as long for a step"},
           {"memory_gb_per_s", &HostsConfig::memory_gb_per_s, at_least(0),
            "speed of kernels on a worker's own vectors; 0: no time (measured steps contain the optimizer's)"},
           {"gbit_per_s", &HostsConfig::gbit_per_s, at_least(0), "network card, each way; 0: network.gbit_per_s"}}};
}

const core::Table<NetworkConfig>& network_table() {
  static const core::Table<NetworkConfig> table{
      "network",
      {{"latency_us", &NetworkConfig::latency_us, at_least(0), "from card to card"},
       {"per_message_us", &NetworkConfig::per_message_us, at_least(0),
        "the sender's card is busy so long for every message, beside its bytes"},
       {"gbit_per_s", &NetworkConfig::gbit_per_s, at_least(0), "every host's network card, each way; 0: no limit"},
       {"local_latency_us", &NetworkConfig::local_latency_us, at_least(0), "of a message within a host"},
       {"local_gb_per_s", &NetworkConfig::local_gb_per_s, at_least(0),
        "copying within a host; 0: nothing is copied, memory is lent"}}};
  return table;
}

const core::Table<ServersConfig>& servers_table() {
  static const core::Table<ServersConfig> table{
      "servers",
      {{"placement", &ServersConfig::placement, core::one_of({"colocated", "dedicated"}),
        "shards sit on the workers' hosts in turn, or on hosts of their own"},
       {"hosts", &ServersConfig::hosts, core::anything(), "dedicated: NAME of the [hosts.NAME] that they sit on"},
       {"per_request_us", &ServersConfig::per_request_us, at_least(0),
        "a server's time per request, beside its kernels"},
       {"memory_gb_per_s", &ServersConfig::memory_gb_per_s, at_least(0), "speed of a server's kernels; 0: no time"}}};
  return table;
}

}  // namespace troupe::sim
