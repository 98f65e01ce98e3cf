#include "sim/cluster_tables.hpp"

namespace troupe::sim {

using core::at_least;
using core::between;

namespace {

constexpr double kMost = 1'000'000;

core::Table<CollectiveSpeedConfig> speeds(const std::string& section, const CollectiveSpeedConfig& defaults) {
  const double least = defaults.gb_per_s;
  return {
      section,
      {{"gb_per_s", &CollectiveSpeedConfig::gb_per_s, at_least(least),
        "bytes between ranks; 0: as fast as card or device"},
       {"sum_gb_per_s", &CollectiveSpeedConfig::sum_gb_per_s, at_least(least), "reading what is summed; 0: no time"},
       {"convert_gb_per_s", &CollectiveSpeedConfig::convert_gb_per_s, at_least(least),
        "float32 to 16 bits and back; 0: no time"},
       {"memory_gb_per_s", &CollectiveSpeedConfig::memory_gb_per_s, at_least(least),
        "of a host, for shm and hierarchical; 0: no time"}},
      defaults};
}

}  // namespace

core::Table<HostsConfig> hosts_table(const std::string& name) {
  return {
      "hosts." + name,
      {{"count", &HostsConfig::count, between(1, kMost), "hosts of this kind"},
       {"devices", &HostsConfig::devices, between(0, kMost), "workers that fit on one host"},
       {"step_ms", &HostsConfig::step_ms, at_least(0), "time of one step"},
       {"image_ms", &HostsConfig::image_ms, at_least(0), "or: time per sample; a step takes data.batch times as long"},
       {"steps_ms", &HostsConfig::steps_ms, core::above(0), "or: measured times of steps; each step takes one of them"},
       {"profile", &HostsConfig::profile, core::anything(),
        "or: a file of measured times, from `troupe bench step --profile FILE`, or several, for ranks in turn"},
       {"step_sigma", &HostsConfig::step_sigma, between(0, 5),
        "steps vary around step_ms or image_ms: log-normal, deviation of the logarithm"},
       {"slowdown", &HostsConfig::slowdown, between(0.001, 1000), "times as long for a step"},
       {"memory_gb_per_s", &HostsConfig::memory_gb_per_s, at_least(0),
        "kernels on a worker's own vectors; 0: no time (measured steps contain the optimizer)"},
       {"gbit_per_s", &HostsConfig::gbit_per_s, at_least(0), "network card, each way; 0: network.gbit_per_s"},
       {"device_gb_per_s", &HostsConfig::device_gb_per_s, at_least(0),
        "collectives: from a device to others of its host; 0: network.local_gb_per_s, shared by all"}}};
}

core::Table<ModelSizeConfig> models_table(const std::string& name) {
  return {
      "models." + name,
      {{"parameters", &ModelSizeConfig::parameters, at_least(1), "of the model"},
       {"tensors", &ModelSizeConfig::tensors, at_least(1), "that they are in"},
       {"image_ms", &ModelSizeConfig::image_ms, at_least(0), "time per sample, in place of the hosts' own; 0: theirs"},
       {"epoch_samples", &ModelSizeConfig::epoch_samples, at_least(0), "of an epoch; 0: as many as the data set has"}}};
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
       {"memory_gb_per_s", &ServersConfig::memory_gb_per_s, at_least(0), "a server's kernels; 0: no time"}}};
  return table;
}

const core::Table<StepsConfig>& steps_table() {
  static const core::Table<StepsConfig> table{
      "steps",
      {{"buckets", &StepsConfig::buckets, between(1, 1000),
        "gradients are reduced in so many parts while backward goes on; 1: whole, after the step"},
       {"backward", &StepsConfig::backward, between(0, 1), "share of a step; buckets become ready evenly over it"}}};
  return table;
}

const core::Table<StragglersConfig>& stragglers_table() {
  static const core::Table<StragglersConfig> table{
      "stragglers",
      {{"probability", &StragglersConfig::probability, between(0, 1), "of a step to take longer"},
       {"factor", &StragglersConfig::factor, between(1, 1e6), "as long"}}};
  return table;
}

core::Table<SlowConfig> slow_table(const std::string& name) {
  return {"slow." + name,
          {{"factor", &SlowConfig::factor, between(0.001, 1e6), "steps take so many times as long"},
           {"from_s", &SlowConfig::from_s, at_least(0), "steps that begin from here on"},
           {"to_s", &SlowConfig::to_s, at_least(0), "and before this; 0: to the end"},
           {"workers", &SlowConfig::workers, at_least(0), "ranks; none: all"}}};
}

const core::Table<FailuresConfig>& failures_table() {
  static const core::Table<FailuresConfig> table{
      "failures",
      {{"mean_time_between_s", &FailuresConfig::mean_time_between_s, at_least(0),
        "between two deaths of one host, exponential; 0: none"},
       {"detection_s", &FailuresConfig::detection_s, at_least(0), "from a host's death until the others know"},
       {"rejoin_s", &FailuresConfig::rejoin_s, at_least(0),
        "from a host's death until its workers are back as new members; 0: never"}}};
  return table;
}

core::Table<LossConfig> loss_table(const std::string& name) {
  return {"loss." + name,
          {{"worker", &LossConfig::worker, at_least(0), "rank of one whose host dies, with all workers on it"},
           {"at_s", &LossConfig::at_s, at_least(0), "when"}}};
}

const core::Table<CollectiveSpeedConfig>& collective_speed_table() {
  static const auto table = speeds("collectives", {});
  return table;
}

const core::Table<CollectivesConfig>& collectives_table() {
  static const core::Table<CollectivesConfig> table{
      "collectives",
      {{"tensor_by_tensor", &CollectivesConfig::tensor_by_tensor, core::anything(),
        "a collective per tensor, as older systems do, in place of one over all parameters"}}};
  return table;
}

core::Table<CollectiveSpeedConfig> algorithm_table(Algorithm algorithm) {
  return speeds("collectives." + std::string(exchange::name(algorithm)),
                {.gb_per_s = -1, .sum_gb_per_s = -1, .convert_gb_per_s = -1, .memory_gb_per_s = -1});
}

}  // namespace troupe::sim
