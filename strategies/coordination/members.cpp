#include "strategies/coordination/members.hpp"

#include <algorithm>
#include <utility>

namespace troupe::coordination {

using strategies::WorkerId;

void Members::place(std::vector<SiteId> workers, std::vector<SiteId> servers) {
  worker_sites_ = std::move(workers);
  server_sites_ = std::move(servers);
}

std::uint32_t Members::count() const { return static_cast<std::uint32_t>(std::ranges::count(alive_, true)); }

std::vector<WorkerId> Members::list() const {
  std::vector<WorkerId> list;
  for (WorkerId w = 0; w < alive_.size(); ++w)
    if (alive_[w]) list.push_back(w);
  return list;
}

std::vector<WorkerId> Members::at(SiteId site) const {
  std::vector<WorkerId> workers;
  for (WorkerId w = 0; w < worker_sites_.size(); ++w)
    if (worker_sites_[w] == site) workers.push_back(w);
  return workers;
}

bool Members::lives(SiteId site) const {
  const auto workers = at(site);
  return workers.empty() || std::ranges::any_of(workers, [this](WorkerId w) { return alive_[w]; });
}

bool Members::has_center(SiteId site) const { return std::ranges::find(server_sites_, site) != server_sites_.end(); }

bool Members::with_center(WorkerId worker) const { return !worker_sites_.empty() && has_center(worker_sites_[worker]); }

}  // namespace troupe::coordination
