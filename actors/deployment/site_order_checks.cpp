#include "actors/deployment/site_order_checks.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "actors/deployment/placement.hpp"
#include "core/devices/device_reduction.hpp"
#include "transport/exchange/collectives/algorithm.hpp"

namespace troupe::actors {

namespace {

constexpr std::uint32_t kMostSites = 1U << 16;
constexpr std::uint64_t kMostFloats = std::uint64_t{1} << 40;
constexpr std::size_t kLongestAddress = std::size_t{8} << 10;
constexpr std::size_t kMostLengths = 64;
constexpr std::size_t kMostAlgorithms = 16;
constexpr std::uint32_t kMostRounds = 1000;

bool is_algorithm(const std::string& name) {
  try {
    return exchange::algorithm_of(name) != exchange::Algorithm::automatic;
  } catch (const std::out_of_range&) {
    return false;
  }
}

}  // namespace

SiteOrderChecks::SiteOrderChecks(const SiteOrder& order, const RunSpec& spec, ExchangePlan exchange)
    : site_(order.site),
      most_floats_(order.most_floats),
      own_workers_(order.workers),
      own_servers_(order.servers),
      workers_(spec.workers),
      servers_(spec.servers),
      exchange_(std::move(exchange)) {}

std::size_t SiteOrderChecks::sites() const {
  std::uint32_t last = site_;
  for (const auto* list : {&exchange_.worker_sites, &exchange_.server_sites})
    for (const auto site : *list) last = std::max(last, site);
  return std::size_t{last} + 1;
}

Refusal SiteOrderChecks::check() const {
  if (exchange_.in_place()) return std::string("a site at a node needs an endpoint");
  if (exchange_.worker_sites.size() != workers_ || exchange_.server_sites.size() != servers_)
    return fmt::format("the order places {} workers and {} servers, the configuration has {} and {}",
                       exchange_.worker_sites.size(), exchange_.server_sites.size(), workers_, servers_);
  if (site_ == 0 || sites() > kMostSites) return fmt::format("invalid site {} of {}", site_, sites());
  if (own_workers_ != members_at(exchange_.worker_sites, site_) ||
      own_servers_ != members_at(exchange_.server_sites, site_) || own_workers_.empty())
    return std::string("the order's members are not those of its site");
  if (!exchange_.site_hosts.empty() && exchange_.site_hosts.size() < sites())
    return std::string("not every site has a host");
  if (most_floats_ == 0 || most_floats_ > kMostFloats)
    return fmt::format("invalid vector length: {} floats", most_floats_);
  return {};
}

Refusal SiteOrderChecks::check(const SiteAddresses& addresses) const {
  if (addresses.texts.size() != sites())
    return fmt::format("{} addresses for {} sites", addresses.texts.size(), sites());
  if (std::ranges::any_of(addresses.texts, [](const auto& text) { return text.size() > kLongestAddress; }))
    return std::string("an address that is too long");
  if (addresses.first_step < -1 || addresses.first_step > static_cast<std::int64_t>(kMostSteps))
    return fmt::format("invalid first step {}", addresses.first_step);
  if (!addresses.versions.empty() && addresses.versions.size() != servers_)
    return fmt::format("versions of {} shards of {}", addresses.versions.size(), servers_);
  return {};
}

Refusal SiteOrderChecks::check(const SiteDirectory& actors) const {
  if (!actors.coordinator || !actors.recorder) return std::string("a run without coordinator or recorder");
  if (actors.worker_sites != exchange_.worker_sites || actors.server_sites != exchange_.server_sites ||
      actors.site_hosts != exchange_.site_hosts)
    return std::string("the members are at other sites than the order says");
  const auto& members = actors.members;
  const bool ascending = std::ranges::adjacent_find(members, std::greater_equal<>{}) == members.end();
  if (!ascending || (!members.empty() && members.back() >= workers_))
    return std::string("members that are not part of the run");
  const auto exchange = experiment::parse_exchange(actors.exchange, "the run");
  if (!exchange) return exchange.error().message;
  if (exchange->reductions.empty() || exchange->packed != exchange_.packed ||
      exchange->on_devices != exchange_.on_devices)
    return std::string("the run exchanges in another way than the order says");
  return {};
}

Refusal SiteOrderChecks::check(const MeasureOrder& order) const {
  if (order.worker_sites != exchange_.worker_sites || (!order.site_hosts.empty() && order.site_hosts.size() < sites()))
    return std::string("the group that measures is not the run's group");
  // Without lengths it asks for mapped memory, or for a group.
  const bool asks = order.algorithms.size() == 1 && is_algorithm(order.algorithms.front()) &&
                    (exchange::info(exchange::algorithm_of(order.algorithms.front())).in_mapped_memory ||
                     exchange::info(exchange::algorithm_of(order.algorithms.front())).on_devices);
  if (order.group.size() > core::kMostGroupName) return std::string("a group's name that is too long");
  if ((order.floats.empty() && !asks) || order.floats.size() > kMostLengths ||
      std::ranges::any_of(order.floats, [this](auto floats) { return floats == 0 || floats > most_floats_; }))
    return std::string("invalid lengths to measure");
  if (order.algorithms.empty() || order.algorithms.size() > kMostAlgorithms ||
      !std::ranges::all_of(order.algorithms, is_algorithm))
    return std::string("algorithms that there are not");
  if (order.rounds == 0 || order.rounds > kMostRounds) return fmt::format("{} rounds are too many", order.rounds);
  return {};
}

}  // namespace troupe::actors
