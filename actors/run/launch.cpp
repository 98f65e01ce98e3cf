#include "actors/run/launch.hpp"

#include <algorithm>
#include <map>
#include <random>

#include <fmt/format.h>

#include "experiment/exchange_check.hpp"
#include "experiment/run_spec.hpp"
#include "experiment/state/vector_memory.hpp"
#include "transport/inproc/endpoint.hpp"
#include "transport/security/tls_context.hpp"

namespace troupe::actors {

namespace {

constexpr std::string_view kAutomatic = "auto";

std::optional<core::HalfKind> wire_of(const std::string& wire) {
  if (wire == "fp16") return core::HalfKind::fp16;
  if (wire == "bf16") return core::HalfKind::bf16;
  return {};
}

/// `auto` begins as asa, until members have measured.
exchange::Algorithm algorithm_until_measured(const experiment::ExchangeConfig& config) {
  const auto algorithm = experiment::reduction_algorithm(config);
  return algorithm == exchange::Algorithm::automatic ? exchange::Algorithm::asa : algorithm;
}

/// Packing saves bytes and costs a copy: within a host bytes are cheaper, and arenas of devices have next to no padding.
bool packs(const std::string& endpoint, bool on_devices) {
  return !on_devices && !transport::endpoint_info(endpoint).maps_memory;
}

std::string new_secret() {
  std::random_device device;
  std::string secret;
  for (int word = 0; word < 4; ++word) secret += fmt::format("{:08x}", device());
  return secret;
}

/// Processes of equal ones can map each other's memory. A node that is not connected yet has told nothing: it is taken to be where other nodes of
/// the same address are, or it would use the GPUs and cores of its host as if it were alone there.
std::string domain_of(const Node& node, const std::vector<Node>& nodes, const NodeFacts& here) {
  if (node.actor) return node.facts.shared_memory_domain;
  if (is_loopback(node.at)) return here.shared_memory_domain;
  const auto beside =
      std::ranges::find_if(nodes, [&](const Node& other) { return other.actor && other.at.host == node.at.host; });
  return beside == nodes.end() ? node.at.host : beside->facts.shared_memory_domain;
}

std::vector<std::uint32_t> hosts_of(const Placement& placement, const std::vector<Node>& nodes, const NodeFacts& here) {
  std::vector<std::string> domains;
  std::vector<std::uint32_t> hosts;
  for (const auto process : placement.processes) {
    const auto domain =
        process == Placement::kHere ? here.shared_memory_domain : domain_of(nodes[process - 1], nodes, here);
    const auto known = std::ranges::find(domains, domain);
    hosts.push_back(static_cast<std::uint32_t>(known - domains.begin()));
    if (known == domains.end()) domains.push_back(domain);
  }
  return hosts;
}

bool in_one_place(const std::vector<Node>& nodes, const std::string& version) {
  const auto here = own_facts(version, {});
  return std::ranges::all_of(
      nodes, [&](const Node& node) { return node.facts.shared_memory_domain == here.shared_memory_domain; });
}

core::Result<void> check_endpoint(const Settings& settings, const std::vector<Node>& nodes, bool one_place) {
  const auto& endpoint = transport::endpoint_info(settings.exchange.endpoint);
  using transport::Reach;
  if (endpoint.reach == Reach::process || (endpoint.reach == Reach::host && !one_place)) {
    return core::fail(core::Errc::config,
                      fmt::format("{}: exchange.endpoint = \"{}\": {}: use \"auto\" or \"{}\"",
                                  settings.config.where("exchange.endpoint"), endpoint.name,
                                  endpoint.reach == Reach::host ? "nodes on several hosts share no memory"
                                                                : "it carries nothing between processes",
                                  transport::automatic_endpoint(/*one_host=*/false, /*in_job=*/false).name));
  }
  if (exchange::info(exchange::algorithm_of(settings.exchange.algorithm)).in_mapped_memory && !endpoint.maps_memory) {
    return core::fail(core::Errc::config,
                      fmt::format("{}: exchange.algorithm = \"{}\": workers on several hosts share no memory: use "
                                  "\"auto\"",
                                  settings.config.where("exchange.algorithm"), settings.exchange.algorithm));
  }
  for (const auto& node : nodes) {
    if (node.actor && std::ranges::find(node.facts.endpoints, endpoint.name) == node.facts.endpoints.end())
      return core::fail(core::Errc::config,
                        fmt::format("exchange.endpoint = \"{}\": node {} ({}) has none in its build", endpoint.name,
                                    node.name, node.facts.host));
  }
  return {};
}

void choose_endpoint(Settings& settings, bool one_place, bool in_job) {
  auto& endpoint = settings.exchange.endpoint;
  if (endpoint == kAutomatic) endpoint = transport::automatic_endpoint(one_place, in_job).name;
}

/// The part of a Launch that does not depend on the placement. REQUIRES: `settings` name an endpoint.
core::Result<Launch> launch_over(std::vector<Node> nodes, const Settings& settings, bool one_place,
                                 const security::TlsFiles& tls, const std::string& version) {
  const auto& endpoint = settings.exchange.endpoint;
  if (auto fits = check_endpoint(settings, nodes, one_place); !fits) return tl::unexpected(fits.error());
  auto config = core::Config::parse(experiment::schema(), settings.config.to_toml(), "configuration of the run",
                                    {fmt::format("exchange.endpoint=\"{}\"", endpoint)});
  if (!config) return tl::unexpected(config.error());

  Launch launch;
  launch.between_hosts = !one_place;
  const auto missing = std::ranges::count_if(nodes, [](const Node& node) { return !node.actor; });
  launch.note = fmt::format("{}: vectors go over {}",
                            missing > 0 ? fmt::format("{} of {} nodes are not connected yet", missing, nodes.size())
                            : one_place ? std::string("all processes on this host")
                                        : std::string("processes on several hosts"),
                            endpoint);
  launch.version = version;
  launch.config = config->to_toml();
  launch.secret = new_secret();
  launch.options.secret = launch.secret;
  if (!one_place) launch.options.ucx_transports = transport::ucx_transports_between_hosts();
  if (transport::endpoint_info(endpoint).listens) {
    std::string host = "127.0.0.1";
    for (const auto& node : nodes) {
      if (is_loopback(node.at)) continue;
      auto own = host_towards(node.at);
      if (!own) return tl::unexpected(own.error());
      host = *own;
      break;
    }
    if (!tls.empty())
      if (auto named = security::check_names(tls, host); !named) return tl::unexpected(named.error());
    launch.options.tcp.listen = transport::bracketed(host) + ":0";
    launch.options.tcp.tls = tls;
  }
  launch.nodes = std::move(nodes);
  return launch;
}

/// Checks the limits of this process; nodes check theirs (SiteOrder::sites_here).
core::Result<void> place(Launch& launch, const Settings& settings, Placement placement) {
  launch.placement = std::move(placement);
  launch.placement.hosts = hosts_of(launch.placement, launch.nodes, own_facts(launch.version, {}));
  return transport::check_open_files(transport::endpoint_info(settings.exchange.endpoint),
                                     launch.placement.sites_in(Placement::kHere), launch.placement.sites());
}

/// Several nodes may be on one host.
void warn_of_crowding(Launch& launch, const Settings& settings) {
  struct Host {
    std::vector<std::uint32_t> workers;
    std::uint32_t cores = 0;
    std::string name;
  };
  std::map<std::string, Host> hosts;  // by shared_memory_domain
  for (std::uint32_t worker = 0; worker < launch.placement.worker_sites.size(); ++worker) {
    const auto process = launch.placement.processes[launch.placement.worker_sites[worker]];
    if (process == Placement::kHere || !launch.nodes[process - 1].actor) continue;
    const auto& facts = launch.nodes[process - 1].facts;
    auto& host = hosts[facts.shared_memory_domain];
    host.workers.push_back(worker);
    host.cores = std::max(host.cores, facts.cores);
    host.name = facts.host;
  }
  for (const auto& [domain, host] : hosts)
    if (auto crowded = experiment::crowding(settings, host.workers, host.cores, "host " + host.name))
      launch.warnings.push_back(std::move(*crowded));
}

}  // namespace

ExchangePlan exchange_plan(const Placement& placement, const Settings& settings) {
  if (placement.sites() == 1) return {};
  const auto& config = settings.exchange;
  const bool on_devices = experiment::device_exchange(settings).possible;
  return {.endpoint = config.endpoint,
          .wire = wire_of(config.wire),
          .worker_sites = placement.worker_sites,
          .server_sites = placement.server_sites,
          .site_hosts = placement.hosts,
          .packed = packs(config.endpoint, on_devices),
          .on_devices = on_devices,
          .reductions = {{{}, algorithm_until_measured(config)}}};
}

Launch launch_here(const RunSpec& spec) {
  Launch launch;
  if (auto crowded = experiment::crowding_here(*spec.settings)) launch.warnings.push_back(std::move(*crowded));
  if (spec.settings->exchange.endpoint == kAutomatic) return launch;
  launch.placement = apart(std::vector<std::uint32_t>(spec.workers, Placement::kHere), spec.servers,
                           server_placement(spec.settings->cluster.server_placement, ServerPlacement::colocated));
  launch.options.hub = transport::make_inproc_hub();
  launch.options.secret = new_secret();
  return launch;
}

core::Result<Launch> launch_on(std::vector<Node> nodes, Settings& settings, std::uint32_t servers,
                               const security::TlsFiles& tls, const std::string& version) {
  if (const auto* const named = transport::find_endpoint(settings.exchange.endpoint); named && named->needs_job)
    return core::fail(
        core::Errc::config,
        fmt::format("{}: exchange.endpoint = \"{}\": nodes are not ranks of an MPI job: start the run with "
                    "mpirun, or use \"auto\"",
                    settings.config.where("exchange.endpoint"), named->name));
  if (nodes.size() > static_cast<std::size_t>(settings.cluster.workers))
    return core::fail(
        core::Errc::config,
        fmt::format("{}: cluster.workers = {}, but there are {} nodes: each needs a worker; name fewer "
                    "nodes, or use cluster.workers = {}",
                    settings.config.where("cluster.workers"), settings.cluster.workers, nodes.size(), nodes.size()));
  const bool one_place = in_one_place(nodes, version);
  choose_endpoint(settings, one_place, /*in_job=*/false);
  const auto workers = static_cast<std::uint32_t>(settings.cluster.workers);
  auto placement = apart(spread(workers, static_cast<std::uint32_t>(nodes.size())), servers,
                         server_placement(settings.cluster.server_placement, ServerPlacement::dedicated));
  auto launch = launch_over(std::move(nodes), settings, one_place, tls, version);
  if (!launch) return launch;
  if (auto placed = place(*launch, settings, std::move(placement)); !placed) return tl::unexpected(placed.error());
  warn_of_crowding(*launch, settings);
  return launch;
}

// The library sums over the whole job, and matches sums by their order only.
core::Result<void> check_library_sum(const Settings& settings, const strategies::Needs& needs,
                                     std::uint32_t workers_per_rank) {
  const auto& algorithm = exchange::info(exchange::algorithm_of(settings.exchange.algorithm));
  if (!algorithm.in_library) return {};
  const auto refuse = [&](const std::string& key, const std::string& why) {
    return core::fail(core::Errc::config,
                      fmt::format("{}: exchange.algorithm = \"{}\" sums over all ranks, one worker of each, and {}: "
                                  "use \"auto\"",
                                  settings.config.where(key), algorithm.name, why));
  };
  if (workers_per_rank != 1)
    return refuse("cluster.workers_per_rank", fmt::format("here are {} workers per rank", workers_per_rank));
  if (needs.subgroups) return refuse("strategy.name", fmt::format("the groups of {} are smaller", settings.strategy));
  return {};
}

core::Result<Launch> launch_in_job(std::vector<Node> nodes, std::uint32_t workers_per_rank, Settings& settings,
                                   std::uint32_t servers, const security::TlsFiles& tls, const std::string& version) {
  const bool one_place = in_one_place(nodes, version);
  choose_endpoint(settings, one_place, /*in_job=*/true);
  const auto ranks = static_cast<std::uint32_t>(nodes.size()) + 1;
  auto launch = launch_over(std::move(nodes), settings, one_place, tls, version);
  if (!launch) return launch;
  auto placement = apart(by_rank(ranks, workers_per_rank), servers,
                         server_placement(settings.cluster.server_placement, ServerPlacement::dedicated));
  if (auto placed = place(*launch, settings, std::move(placement)); !placed) return tl::unexpected(placed.error());
  return launch;
}

}  // namespace troupe::actors
