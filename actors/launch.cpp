#include "actors/launch.hpp"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "transport/inproc.hpp"

namespace troupe::actors {

namespace {

std::string new_secret() {
  std::random_device device;
  std::string secret;
  for (int word = 0; word < 4; ++word) secret += fmt::format("{:08x}", device());
  return secret;
}

std::string bracketed(const std::string& host) { return host.find(':') == std::string::npos ? host : "[" + host + "]"; }

/// Who could map each other's memory counts as one host.
std::vector<std::uint32_t> hosts_of(const Placement& placement, const std::vector<Node>& nodes, const NodeFacts& here) {
  std::vector<std::string> places;
  std::vector<std::uint32_t> hosts;
  for (const auto process : placement.processes) {
    const auto& place = process == Placement::kHere ? here.place : nodes[process - 1].facts.place;
    const auto known = std::ranges::find(places, place);
    hosts.push_back(static_cast<std::uint32_t>(known - places.begin()));
    if (known == places.end()) places.push_back(place);
  }
  return hosts;
}

}  // namespace

Launch launch_here(const Blueprint& plan) {
  Launch launch;
  if (plan.settings->exchange.endpoint == "auto") return launch;
  launch.placement =
      apart(std::vector<std::uint32_t>(plan.workers, Placement::kHere), plan.servers, ServerPlacement::colocated);
  launch.options.hub = transport::make_inproc_hub();
  launch.options.secret = new_secret();
  return launch;
}

core::Result<Launch> launch_on(std::vector<Node> nodes, Settings& settings, std::uint32_t servers,
                               const security::TlsFiles& tls, const std::string& version) {
  const auto here = own_facts(version, {});
  const bool one_place = std::ranges::all_of(nodes, [&](const Node& node) { return node.facts.place == here.place; });
  auto& endpoint = settings.exchange.endpoint;
  if (endpoint == "auto") endpoint = one_place ? "shm" : "tcp";
  if (endpoint == "inproc" || (endpoint == "shm" && !one_place)) {
    return core::fail(core::Errc::config, fmt::format("{}: exchange.endpoint = \"{}\": {}: use \"auto\" or \"tcp\"",
                                                      settings.config.where("exchange.endpoint"), endpoint,
                                                      endpoint == "shm" ? "nodes on several hosts share no memory"
                                                                        : "it carries nothing between processes"));
  }
  for (const auto& node : nodes) {
    if (std::ranges::find(node.facts.endpoints, endpoint) == node.facts.endpoints.end())
      return core::fail(core::Errc::config,
                        fmt::format("exchange.endpoint = \"{}\": node {} ({}) has none in its build", endpoint,
                                    node.name, node.facts.host));
  }
  auto config = core::Config::parse(experiment::schema(), settings.config.to_toml(), "configuration of the run",
                                    {fmt::format("exchange.endpoint=\"{}\"", endpoint)});
  if (!config) return tl::unexpected(config.error());

  Launch launch;
  const auto workers = static_cast<std::uint32_t>(settings.cluster.workers);
  launch.placement =
      apart(spread(workers, static_cast<std::uint32_t>(nodes.size())), servers, ServerPlacement::dedicated);
  launch.between_hosts = !one_place;
  launch.placement.hosts = hosts_of(launch.placement, nodes, here);
  launch.note = fmt::format("{} node{} on {}: vectors go over {}", nodes.size(), nodes.size() == 1 ? "" : "s",
                            one_place ? "this host" : "several hosts", endpoint);
  launch.version = version;
  launch.config = config->to_toml();
  launch.secret = new_secret();
  launch.options.secret = launch.secret;
  if (!one_place) launch.options.ucx_transports = "tcp,self";
  if (endpoint == "tcp") {
    std::string host = "127.0.0.1";
    for (const auto& node : nodes) {
      if (is_loopback(node.at)) continue;
      auto own = host_towards(node.at);
      if (!own) return tl::unexpected(own.error());
      host = *own;
      break;
    }
    launch.options.tcp.listen = bracketed(host) + ":0";
    launch.options.tcp.tls = tls;
  }
  launch.nodes = std::move(nodes);
  return launch;
}

}  // namespace troupe::actors
