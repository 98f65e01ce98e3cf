#include "experiment/wire_bytes.hpp"

#include <algorithm>

#include "exchange/collective.hpp"

namespace troupe::experiment {

using strategies::Transfer;

WireBytes::WireBytes(strategies::WorkerId self, ExchangePlan plan, std::shared_ptr<const exchange::Packing> packing)
    : self_(self), plan_(std::move(plan)), packing_(std::move(packing)) {}

std::size_t WireBytes::travelling(std::size_t offset, std::size_t count) const {
  return plan_.packed && packing_ ? packing_->packed(offset, count) : count;
}

std::uint64_t WireBytes::between(std::uint32_t site, std::uint32_t other, std::size_t offset, std::size_t count) const {
  if (site == other) return count * sizeof(float);
  return travelling(offset, count) * (plan_.wire ? sizeof(std::uint16_t) : sizeof(float));
}

std::uint64_t WireBytes::to_shard(strategies::ShardId shard, Transfer transfer, std::size_t offset,
                                  std::size_t count) const {
  const auto here = plan_.in_place() ? 0 : plan_.worker_sites.at(self_);
  const auto there = plan_.in_place() ? 0 : plan_.server_sites.at(shard);
  return between(here, there, offset, count) * (transfer == Transfer::push_pull ? 2 : 1);
}

std::uint64_t WireBytes::letter(strategies::WorkerId to, std::size_t floats) const {
  const auto here = plan_.in_place() ? 0 : plan_.worker_sites.at(self_);
  const auto there = plan_.in_place() ? 0 : plan_.worker_sites.at(to);
  return between(here, there, 0, floats);
}

std::uint64_t WireBytes::collective(const strategies::Group& members, std::optional<strategies::WorkerId> root,
                                    std::optional<std::size_t> offset, std::size_t count) const {
  const auto floats = offset ? travelling(*offset, count) : count;
  exchange::Group group;
  for (const auto member : members) {
    if (member == self_) group.rank = group.size();
    group.peers.emplace_back();
    if (!plan_.site_hosts.empty()) group.hosts.push_back(plan_.site_hosts.at(plan_.worker_sites.at(member)));
  }
  exchange::CollectiveTask task{.algorithm = plan_.reduction(floats)};
  if (root) task.root = static_cast<std::size_t>(std::ranges::find(members, *root) - members.begin());
  return exchange::collective_bytes(task, group, floats);
}

}  // namespace troupe::experiment
