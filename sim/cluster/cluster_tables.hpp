/// The sections of a cluster file as option tables: keys, defaults, rules and help in one place. Pure functions.
#pragma once

#include "sim/cluster/cluster_file.hpp"

namespace troupe::sim {

[[nodiscard]] core::Table<HostsConfig> hosts_table(const std::string& name);       ///< section "hosts.NAME"
[[nodiscard]] core::Table<ModelSizeConfig> models_table(const std::string& name);  ///< section "models.NAME"
[[nodiscard]] const core::Table<NetworkConfig>& network_table();
[[nodiscard]] const core::Table<ServersConfig>& servers_table();
[[nodiscard]] const core::Table<StepsConfig>& steps_table();
[[nodiscard]] const core::Table<StragglersConfig>& stragglers_table();
[[nodiscard]] core::Table<SlowConfig> slow_table(const std::string& name);  ///< section "slow.NAME"
[[nodiscard]] const core::Table<FailuresConfig>& failures_table();
[[nodiscard]] core::Table<LossConfig> loss_table(const std::string& name);  ///< section "loss.NAME"

/// Section "collectives", for all algorithms, and "collectives.asa" and so on, whose speeds are −1 by default.
[[nodiscard]] const core::Table<CollectiveSpeedConfig>& collective_speed_table();
[[nodiscard]] const core::Table<CollectivesConfig>& collectives_table();
[[nodiscard]] core::Table<CollectiveSpeedConfig> algorithm_table(Algorithm algorithm);

}  // namespace troupe::sim
