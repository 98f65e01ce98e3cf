/// The site of each member of a run, and the process of each site. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::actors {

/// The place of the centre's shards in a run of several processes.
enum class ServerPlacement : std::uint8_t {
  dedicated,  ///< with the coordinator: the centre outlives the workers, and every push travels
  colocated,  ///< distributed over the workers' sites: a lost worker takes a part of the centre with it
};

/// `named`: the value of cluster.server_placement; "auto" gives `automatic`.
[[nodiscard]] ServerPlacement server_placement(std::string_view named, ServerPlacement automatic);

struct Placement {
  static constexpr std::uint32_t kHere = 0;  ///< the coordinator's process; node k is k + 1

  std::vector<std::uint32_t> worker_sites{};  ///< by rank; empty: there is one site
  std::vector<std::uint32_t> server_sites{};  ///< by shard
  std::vector<std::uint32_t> processes{};     ///< by site
  std::vector<std::uint32_t> hosts{};         ///< by site, the number of its host; empty: one host

  [[nodiscard]] std::size_t sites() const noexcept { return processes.size(); }
  /// How many sites are in the process.
  [[nodiscard]] std::uint32_t sites_in(std::uint32_t process) const;
  [[nodiscard]] std::vector<std::uint32_t> workers_at(std::uint32_t site) const;
  [[nodiscard]] std::vector<std::uint32_t> servers_at(std::uint32_t site) const;
};

/// The members at `site`, ascending. `sites`: the site of each member.
[[nodiscard]] std::vector<std::uint32_t> members_at(const std::vector<std::uint32_t>& sites, std::uint32_t site);

/// All members at site 0, in this process.
[[nodiscard]] Placement one_site();

/// Site 0 has the coordinator, site w + 1 worker w. `processes`: by worker.
[[nodiscard]] Placement apart(const std::vector<std::uint32_t>& processes, std::uint32_t servers,
                              ServerPlacement placement);

/// The process of each worker, with consecutive workers at one node. Node k is process k + 1.
[[nodiscard]] std::vector<std::uint32_t> spread(std::uint32_t workers, std::uint32_t nodes);

/// The process of each worker in an MPI job, with consecutive workers at one rank. Rank 0 is this process.
[[nodiscard]] std::vector<std::uint32_t> by_rank(std::uint32_t ranks, std::uint32_t workers_per_rank);

}  // namespace troupe::actors
