/// The sections of a cluster file as option tables: keys, defaults, rules and help in one place.
#pragma once

#include "sim/cluster_file.hpp"

namespace troupe::sim {

[[nodiscard]] core::Table<HostsConfig> hosts_table(const std::string& name);  ///< section "hosts.NAME"
[[nodiscard]] const core::Table<NetworkConfig>& network_table();
[[nodiscard]] const core::Table<ServersConfig>& servers_table();

}  // namespace troupe::sim
