/// Which cores the workers of a site compute on (cluster.pinning). Every process of a host computes the places of all workers there, from the
/// run's placement, and takes those of its own. Has no influence on a run's numbers or records.
#pragma once

#include <string>
#include <vector>

#include "actors/protocol/vocabulary.hpp"
#include "core/affinity/assignment.hpp"

namespace troupe::actors {

struct SitePinning {
  std::vector<core::Cpus> workers;  // by worker at the site, in the order of ranks; empty: none is pinned
  core::Cpus loaders;               // for their threads; empty: any
  std::string text;                 // what was decided, for the user; empty: nothing, as the configuration wants it
};

/// The ranks of the workers on the host of `site`, ascending.
[[nodiscard]] std::vector<std::uint32_t> workers_on_host(const ExchangePlan& exchange, std::uint32_t workers,
                                                         std::uint32_t site);

/// Why no worker can be pinned here, whatever the configuration; empty: they can be. `variable`: getenv.
[[nodiscard]] std::string pinning_obstacle(const core::Result<core::Machine>& machine, bool tells_waits,
                                           const char* (*variable)(const char*));

/// `workers`: the ranks at `site`. `usable`: the cpus of this process.
[[nodiscard]] SitePinning pin_site(const Settings& settings, const ExchangePlan& exchange, std::uint32_t site,
                                   const std::vector<std::uint32_t>& workers, const core::Machine& machine,
                                   const core::Cpus& usable);

/// The same for this process on this machine.
[[nodiscard]] SitePinning pin_site(const Settings& settings, const ExchangePlan& exchange, std::uint32_t site,
                                   const std::vector<std::uint32_t>& workers);

/// One line about several sites, from their texts; empty: there is nothing to say.
[[nodiscard]] std::string pinning_note(const std::vector<std::string>& texts);

}  // namespace troupe::actors
