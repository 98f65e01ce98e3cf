#include "actors/deployment/nodes.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/protocol/message_fields.hpp"
#include "actors/protocol/refusal.hpp"
#include "actors/requests/interruptible.hpp"
#include "core/devices/management_library.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::actors {

namespace {

constexpr core::Duration kConnectDeadline = std::chrono::seconds(10);
constexpr auto kQueryDeadline = std::chrono::seconds(10);

std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// A row of /proc/meminfo, in bytes.
std::uint64_t meminfo(const std::string& row) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(row + ":")) return std::stoull(line.substr(row.size() + 1)) * 1024;
  return 0;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// Equal in processes that can map each other's memory. That needs one host and one network namespace, because it uses local sockets.
std::string shared_memory_domain() {
  std::error_code none;
  return line_of("/proc/sys/kernel/random/boot_id") + " " +
         std::filesystem::read_symlink("/proc/self/ns/net", none).string() + " " +
         std::filesystem::read_symlink("/proc/self/ns/pid", none).string();
}

/// Equal for two ways to write one address: IPv6 has several, names of hosts have no case.
std::string normal_form(HostPort address) {
  std::ranges::transform(address.host, address.host.begin(), [](unsigned char c) { return std::tolower(c); });
  in6_addr v6{};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::inet_pton(AF_INET6, address.host.c_str(), &v6) == 1 &&
      ::inet_ntop(AF_INET6, &v6, text.data(), text.size()) != nullptr)
    address.host = text.data();
  return fmt::format("{}:{}", transport::bracketed(address.host), address.port);
}

/// ", also as …" where a node has two names.
std::string as_well_as(const std::string& other, const std::string& name) {
  return other == name ? "" : ", also as " + other;
}

}  // namespace

core::Result<std::vector<std::string>> parse_nodes(const std::string& list, const std::string& argument) {
  std::vector<std::string> names, addresses;
  std::size_t begin = 0;
  while (begin <= list.size()) {
    const auto end = std::min(list.find(',', begin), list.size());
    const auto name = list.substr(begin, end - begin);
    begin = end + 1;
    const auto address = parse_host_port(name);
    if (!address) return core::fail(core::Errc::config, fmt::format("{}: {}", argument, address.error().message));
    auto known = normal_form(*address);
    if (const auto former = std::ranges::find(addresses, known); former != addresses.end())
      return core::fail(core::Errc::config,
                        fmt::format("{}: {} is listed twice{}", argument, name,
                                    as_well_as(names[static_cast<std::size_t>(former - addresses.begin())], name)));
    addresses.push_back(std::move(known));
    names.push_back(name);
  }
  return names;
}

core::Result<NodeFacts> facts_of(caf::actor_system& system, const NodeActor& node, const std::string& name,
                                 const std::stop_token& stop) {
  caf::scoped_actor self(system);
  core::Result<NodeFacts> found = core::fail(core::Errc::internal, "no answer");
  auto asked = self->request(node, kQueryDeadline, NodeQuery{});
  receive(
      asked, stop,
      [&](const NodeFacts& facts) {
        found = facts;
        for (auto* text : {&found->version, &found->host, &found->shared_memory_domain, &found->data_host})
          *text = one_line(*text);
        for (auto* list : {&found->endpoints, &found->members})
          for (auto& text : *list) text = one_line(text);
      },
      [&](const caf::error& error) {
        found = core::fail(error == caf::sec::request_timeout ? core::Errc::timeout : core::Errc::peer_lost,
                           fmt::format("node {}: no answer to the query: {}", name, system.render(error)));
      });
  if (stop.stop_requested()) return tl::unexpected(core::interrupted_early());
  return found;
}

core::Result<GpuReport> gpus_of(caf::actor_system& system, const NodeActor& node, const std::string& name) {
  caf::scoped_actor self(system);
  core::Result<GpuReport> found = core::fail(core::Errc::internal, "no answer");
  self->request(node, kQueryDeadline, GpuQuery{})
      .receive(
          [&](const GpuReport& report) {
            found = report;
            for (GpuFacts& gpu : found->gpus) gpu.name = one_line(gpu.name), gpu.uuid = one_line(gpu.uuid);
          },
          [&](const caf::error& error) {
            found = core::fail(error == caf::sec::request_timeout ? core::Errc::timeout : core::Errc::peer_lost,
                               fmt::format("node {}: no answer about its GPUs: {}", name, system.render(error)));
          });
  return found;
}

core::Result<std::vector<Node>> connect_nodes(caf::actor_system& system, Network& network,
                                              const std::vector<std::string>& names, std::size_t least,
                                              const std::string& version, const std::stop_token& stop) {
  std::vector<Node> nodes;
  std::size_t may_miss = names.size() - least;
  for (const auto& name : names) {
    const auto at = parse_host_port(name);
    if (!at) return tl::unexpected(at.error());
    auto actor = network.connect<NodeActor>(*at, kConnectDeadline, stop);
    if (!actor) {
      const auto code = actor.error().code;
      const bool missing = code == core::Errc::peer_lost || code == core::Errc::timeout;
      if (!missing || may_miss == 0) return tl::unexpected(actor.error());
      --may_miss;
      nodes.push_back({name, *at, {}, {}});
      continue;
    }
    const auto same = [&](const Node& node) { return node.actor && node.actor.address() == actor->address(); };
    if (const auto former = std::ranges::find_if(nodes, same); former != nodes.end())
      return core::fail(core::Errc::config,
                        fmt::format("--nodes: {} and {} are the same node: list it once", former->name, name));
    auto facts = facts_of(system, *actor, name, stop);
    if (!facts) return tl::unexpected(facts.error());
    if (facts->version != version)
      return core::fail(
          core::Errc::config,
          fmt::format("node {} ({}) runs troupe {}, this is troupe {}: a run needs one version everywhere", name,
                      facts->host, facts->version, version));
    nodes.push_back({name, *at, *actor, *facts});
  }
  return nodes;
}

std::string spoken_version(const std::string& program) {
  const auto fingerprint = message_fingerprint();
  return fmt::format("{}, protocol {:08x}", program, static_cast<std::uint32_t>(fingerprint ^ fingerprint >> 32));
}

NodeFacts own_facts(const std::string& version, const std::string& data_host) {
  NodeFacts facts;
  facts.version = version;
  facts.host = host_name();
  facts.shared_memory_domain = shared_memory_domain();
  facts.data_host = data_host;
  facts.cores = std::max(1U, std::thread::hardware_concurrency());
  std::array<double, 1> load{};
  if (getloadavg(load.data(), 1) == 1) facts.load = load[0];
  facts.memory_bytes = meminfo("MemTotal");
  facts.memory_free_bytes = meminfo("MemAvailable");
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0, resident = 0;
  if (statm >> pages >> resident) facts.resident_bytes = resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::error_code none;
  for (int gpu = 0; std::filesystem::exists(fmt::format("/dev/nvidia{}", gpu), none); ++gpu) ++facts.gpus;
  const auto endpoints = transport::built_in_endpoints();
  for (const auto& entry : endpoints.entries())
    if (entry.make) facts.endpoints.push_back(entry.name);
  return facts;
}

GpuReport own_gpus() {
  GpuReport report;
  const auto states = core::gpu_states();
  if (!states) return report;
  for (const core::GpuState& state : *states)
    report.gpus.push_back({state.name, state.uuid, state.load ? static_cast<std::int32_t>(*state.load) : -1,
                           state.memory_bytes, state.memory_used_bytes});
  return report;
}

core::Result<std::string> host_towards(const HostPort& there) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const auto nowhere = [&](const std::string& why) {
    return core::fail(core::Errc::config, fmt::format("no way to {}: {}", there.host, why));
  };
  if (const int error = getaddrinfo(there.host.c_str(), "9", &hints, &found); error != 0)
    return nowhere(gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  const int socket_fd = ::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_fd < 0) return nowhere("no socket");
  sockaddr_storage own{};
  socklen_t length = sizeof(own);
  std::array<char, NI_MAXHOST> text{};
  // Connecting a datagram socket sends nothing: the kernel only looks up the route.
  const bool known =
      ::connect(socket_fd, found->ai_addr, found->ai_addrlen) == 0 &&
      getsockname(socket_fd, reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
      getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0;
  ::close(socket_fd);
  if (!known) return nowhere("there is no route");
  return std::string(text.data());
}

}  // namespace troupe::actors
