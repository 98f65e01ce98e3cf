#include "experiment/state/wire_bytes.hpp"

#include <algorithm>

#include "transport/exchange/collectives/collective.hpp"

namespace troupe::experiment {

using strategies::Transfer;

WireBytes::WireBytes(strategies::WorkerId self, ExchangePlan plan, std::shared_ptr<const exchange::Packing> packing)
    : self_(self), plan_(std::move(plan)), packing_(std::move(packing)) {}

std::size_t WireBytes::travelling(std::size_t offset, std::size_t count) const {
  return plan_.packed && packing_ ? packing_->packed(offset, count) : count;
}

std::uint64_t WireBytes::to_shard(strategies::ShardId shard, Transfer transfer, strategies::Rounding rounding,
                                  std::size_t offset, std::size_t count) const {
  const bool apart = !plan_.in_place() && plan_.worker_sites.at(self_) != plan_.server_sites.at(shard);
  const auto floats = apart ? travelling(offset, count) : count;
  const auto bytes = [&](bool rounded) { return floats * (apart && rounded ? sizeof(std::uint16_t) : sizeof(float)); };
  return (transfer != Transfer::pull ? bytes(plan_.rounds_there(rounding)) : 0) +
         (transfer != Transfer::push ? bytes(plan_.rounds_back(rounding)) : 0);
}

std::uint64_t WireBytes::peer_message(strategies::WorkerId to, std::size_t floats) const {
  const bool apart = !plan_.in_place() && plan_.worker_sites.at(self_) != plan_.worker_sites.at(to);
  if (!apart) return floats * sizeof(float);
  const bool rounded = plan_.rounds_there(strategies::Rounding::none);
  return travelling(0, floats) * (rounded ? sizeof(std::uint16_t) : sizeof(float));
}

std::uint64_t WireBytes::collective(const strategies::Group& members, std::optional<strategies::WorkerId> root,
                                    strategies::Rounding rounding, std::optional<std::size_t> offset,
                                    std::size_t count) const {
  const auto floats = offset ? travelling(*offset, count) : count;
  exchange::Group group;
  for (const auto member : members) {
    if (member == self_) group.rank = group.size();
    group.peers.emplace_back();
    if (!plan_.site_hosts.empty()) group.hosts.push_back(plan_.site_hosts.at(plan_.worker_sites.at(member)));
  }
  exchange::CollectiveTask task{.algorithm = plan_.reduction(floats, rounding)};
  if (root) task.root = static_cast<std::size_t>(std::ranges::find(members, *root) - members.begin());
  return exchange::counted_bytes(task, group, floats);
}

}  // namespace troupe::experiment
