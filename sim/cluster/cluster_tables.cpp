#include "sim/cluster/cluster_tables.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/text/layout.hpp"

namespace troupe::sim {

using core::between;

namespace {

constexpr double kMost = 1'000'000;
// Limits so that one typo does not exceed the 73 years of virtual time, and no positive value rounds to 0.
constexpr double kMostSeconds = 1e9, kMostMs = 1e9, kMostUs = 1e9;
constexpr double kLeast = 1e-6, kFastest = 1e6;  // times in ms, and speeds
constexpr double kMostParameters = 1e12;

/// A number for which 0 means "none".
core::Rule none_or(double none, double low, double high) {
  return {fmt::format("{}0, or between {} and {}", none < 0 ? "-1 or " : "", core::readable(low), core::readable(high)),
          [=](const core::Value& value) {
            const auto* number = std::get_if<double>(&value);
            return number != nullptr && (*number == 0 || *number == none || (*number >= low && *number <= high));
          }};
}
core::Rule time_ms() { return none_or(0, kLeast, kMostMs); }
core::Rule speed() { return none_or(0, kLeast, kFastest); }

core::Table<CollectiveSpeedConfig> speeds(const std::string& section, const CollectiveSpeedConfig& defaults) {
  const auto rule = none_or(std::min(defaults.gb_per_s, 0.0), kLeast, kFastest);
  return {
      section,
      {{"gb_per_s", &CollectiveSpeedConfig::gb_per_s, rule, "bytes between ranks; 0: as fast as card or device"},
       {"sum_gb_per_s", &CollectiveSpeedConfig::sum_gb_per_s, rule, "reading what is summed; 0: no time"},
       {"convert_gb_per_s", &CollectiveSpeedConfig::convert_gb_per_s, rule, "float32 to 16 bits and back; 0: no time"},
       {"memory_gb_per_s", &CollectiveSpeedConfig::memory_gb_per_s, rule,
        "of a host, for shm and hierarchical; 0: no time"}},
      defaults};
}

}  // namespace

core::Table<HostsConfig> hosts_table(const std::string& name) {
  return {
      "hosts." + name,
      {{"count", &HostsConfig::count, between(1, kMost), "hosts of this kind"},
       {"devices", &HostsConfig::devices, between(0, kMost), "workers that fit on one host"},
       {"step_ms", &HostsConfig::step_ms, time_ms(), "time of one step"},
       {"image_ms", &HostsConfig::image_ms, time_ms(), "or: time per sample; a step takes data.batch times as long"},
       {"steps_ms", &HostsConfig::steps_ms, between(kLeast, kMostMs),
        "or: measured times of steps; each step takes one of them"},
       {"profile", &HostsConfig::profile, core::anything(),
        "or: a file of measured times, from `troupe bench step --profile FILE`, or several, for ranks in turn"},
       {"model", &HostsConfig::model, core::anything(),
        "the model that step_ms, image_ms or steps_ms were measured with; other models are refused; empty: any model"},
       {"step_sigma", &HostsConfig::step_sigma, between(0, 5),
        "steps vary around step_ms or image_ms: log-normal, deviation of the logarithm"},
       {"slowdown", &HostsConfig::slowdown, between(0.001, 1000), "times as long for a step"},
       {"memory_gb_per_s", &HostsConfig::memory_gb_per_s, speed(),
        "kernels on a worker's own vectors; 0: no time (measured steps contain the optimizer)"},
       {"gbit_per_s", &HostsConfig::gbit_per_s, speed(), "network card, each way; 0: network.gbit_per_s"},
       {"device_gb_per_s", &HostsConfig::device_gb_per_s, speed(),
        "collectives: from a device to others of its host; 0: network.local_gb_per_s, shared by all"}}};
}

core::Table<ModelSizeConfig> models_table(const std::string& name) {
  return {
      "models." + name,
      {{"parameters", &ModelSizeConfig::parameters, between(1, kMostParameters), "of the model"},
       {"tensors", &ModelSizeConfig::tensors, between(1, kMost), "that they are in"},
       {"image_ms", &ModelSizeConfig::image_ms, time_ms(), "time per sample, in place of the hosts' own; 0: theirs"},
       {"epoch_samples", &ModelSizeConfig::epoch_samples, between(0, 1e12),
        "of an epoch; 0: as many as the data set has"}}};
}

const core::Table<NetworkConfig>& network_table() {
  static const core::Table<NetworkConfig> table{
      "network",
      {{"latency_us", &NetworkConfig::latency_us, between(0, kMostUs), "from card to card"},
       {"per_message_us", &NetworkConfig::per_message_us, between(0, kMostUs),
        "the sender's card is busy so long for every message, beside its bytes"},
       {"gbit_per_s", &NetworkConfig::gbit_per_s, speed(), "every host's network card, each way; 0: no limit"},
       {"local_latency_us", &NetworkConfig::local_latency_us, between(0, kMostUs), "of a message within a host"},
       {"local_gb_per_s", &NetworkConfig::local_gb_per_s, speed(),
        "copying within a host; 0: nothing is copied, memory is lent"}}};
  return table;
}

const core::Table<ServersConfig>& servers_table() {
  static const core::Table<ServersConfig> table{
      "servers",
      {{"placement", &ServersConfig::placement, core::one_of({"colocated", "dedicated"}),
        "shards sit on the workers' hosts in turn, or on hosts of their own"},
       {"hosts", &ServersConfig::hosts, core::anything(), "dedicated: NAME of the [hosts.NAME] that they sit on"},
       {"per_request_us", &ServersConfig::per_request_us, between(0, kMostUs),
        "a server's time per request, beside its kernels"},
       {"memory_gb_per_s", &ServersConfig::memory_gb_per_s, speed(), "a server's kernels; 0: no time"}}};
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
           {"from_s", &SlowConfig::from_s, between(0, kMostSeconds), "steps that begin from here on"},
           {"to_s", &SlowConfig::to_s, between(0, kMostSeconds), "and before this; 0: to the end"},
           {"workers", &SlowConfig::workers, between(0, kMost), "ranks; none: all"}}};
}

const core::Table<FailuresConfig>& failures_table() {
  static const core::Table<FailuresConfig> table{
      "failures",
      {{"mean_time_between_s", &FailuresConfig::mean_time_between_s, none_or(0, 1e-6, kMostSeconds),
        "between two deaths of one host, exponential; 0: none"},
       {"detection_s", &FailuresConfig::detection_s, between(0, kMostSeconds),
        "from a host's death until the others know"},
       {"rejoin_s", &FailuresConfig::rejoin_s, between(0, kMostSeconds),
        "from a host's death until its workers are back as new members; 0: never"}}};
  return table;
}

core::Table<LossConfig> loss_table(const std::string& name) {
  return {"loss." + name,
          {{"worker", &LossConfig::worker, between(0, kMost), "rank of one whose host dies, with all workers on it"},
           {"at_s", &LossConfig::at_s, between(0, kMostSeconds), "when"}}};
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
