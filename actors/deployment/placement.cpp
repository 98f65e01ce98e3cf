#include "actors/deployment/placement.hpp"

#include <algorithm>

namespace troupe::actors {

std::vector<std::uint32_t> members_at(const std::vector<std::uint32_t>& sites, std::uint32_t site) {
  std::vector<std::uint32_t> members;
  for (std::uint32_t m = 0; m < sites.size(); ++m)
    if (sites[m] == site) members.push_back(m);
  return members;
}

ServerPlacement server_placement(std::string_view named, ServerPlacement automatic) {
  if (named == "dedicated") return ServerPlacement::dedicated;
  return named == "colocated" ? ServerPlacement::colocated : automatic;
}

std::uint32_t Placement::sites_in(std::uint32_t process) const {
  return static_cast<std::uint32_t>(std::ranges::count(processes, process));
}
std::vector<std::uint32_t> Placement::workers_at(std::uint32_t site) const { return members_at(worker_sites, site); }
std::vector<std::uint32_t> Placement::servers_at(std::uint32_t site) const { return members_at(server_sites, site); }

Placement one_site() { return {.worker_sites = {}, .server_sites = {}, .processes = {Placement::kHere}, .hosts = {}}; }

Placement apart(const std::vector<std::uint32_t>& processes, std::uint32_t servers, ServerPlacement placement) {
  Placement all{.worker_sites = {}, .server_sites = {}, .processes = {Placement::kHere}, .hosts = {}};
  for (std::uint32_t w = 0; w < processes.size(); ++w) {
    all.worker_sites.push_back(w + 1);
    all.processes.push_back(processes[w]);
  }
  const auto workers = static_cast<std::uint32_t>(processes.size());
  for (std::uint32_t s = 0; s < servers; ++s)
    all.server_sites.push_back(placement == ServerPlacement::dedicated ? 0 : s % workers + 1);
  return all;
}

std::vector<std::uint32_t> spread(std::uint32_t workers, std::uint32_t nodes) {
  std::vector<std::uint32_t> processes;
  for (std::uint32_t w = 0; w < workers; ++w)
    processes.push_back(static_cast<std::uint32_t>(std::uint64_t{w} * nodes / workers) + 1);
  return processes;
}

std::vector<std::uint32_t> by_rank(std::uint32_t ranks, std::uint32_t workers_per_rank) {
  std::vector<std::uint32_t> processes;
  for (std::uint32_t w = 0; w < ranks * workers_per_rank; ++w) processes.push_back(w / workers_per_rank);
  return processes;
}

}  // namespace troupe::actors
