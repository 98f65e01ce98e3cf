/// Which member of a company is at which site, and which site is in which process. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::actors {

/// Where the centre is kept when there are several processes.
enum class ServerPlacement : std::uint8_t {
  dedicated,  ///< with the coordinator: it outlives the workers, and every push travels
  colocated,  ///< shard by shard with the workers: whoever loses a worker loses a part of the centre
};

/// `named`: as cluster.server_placement has it; "auto" is `automatic`.
[[nodiscard]] ServerPlacement server_placement(std::string_view named, ServerPlacement automatic);

struct Placement {
  static constexpr std::uint32_t kHere = 0;  ///< the coordinator's process; node k is k + 1

  std::vector<std::uint32_t> worker_sites{};  ///< by rank; empty: there is one site
  std::vector<std::uint32_t> server_sites{};  ///< by shard
  std::vector<std::uint32_t> processes{};     ///< by site
  std::vector<std::uint32_t> hosts{};         ///< by site, any numbers that tell hosts apart; empty: all on one

  [[nodiscard]] std::size_t sites() const noexcept { return processes.size(); }
  [[nodiscard]] std::vector<std::uint32_t> workers_at(std::uint32_t site) const;
  [[nodiscard]] std::vector<std::uint32_t> servers_at(std::uint32_t site) const;
};

/// Everyone at site 0, here.
[[nodiscard]] Placement one_site();

/// Site 0 is the coordinator's, site w + 1 worker w's. `processes`: of each worker.
[[nodiscard]] Placement apart(const std::vector<std::uint32_t>& processes, std::uint32_t servers,
                              ServerPlacement placement);

/// Workers over so many nodes, neighbours together: the process of each.
[[nodiscard]] std::vector<std::uint32_t> spread(std::uint32_t workers, std::uint32_t nodes);

/// So many workers at each rank of an MPI job, neighbours together: the process of each. Rank 0 is here.
[[nodiscard]] std::vector<std::uint32_t> by_rank(std::uint32_t ranks, std::uint32_t workers_per_rank);

}  // namespace troupe::actors
