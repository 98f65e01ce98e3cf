#include "transport/registry/endpoint_registry.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "transport/common/module.hpp"
#include "transport/device/staged_endpoint.hpp"
#include "transport/fabric/fabric_module.hpp"
#include "transport/inproc/endpoint.hpp"
#include "transport/shm/endpoint.hpp"
#include "transport/tcp/endpoint.hpp"

namespace troupe::transport {

namespace {

constexpr std::array kRows = {
    EndpointInfo{.name = "inproc",
                 .reach = Reach::process,
                 .maps_memory = true,
                 .why_no_device = "the host copies its messages",
                 .make = make_inproc_endpoint},
    EndpointInfo{.name = "shm",
                 .reach = Reach::host,
                 .maps_memory = true,
                 .automatic_for = AutomaticFor::one_host,
                 .descriptors = {.own = 10, .per_peer = 2},
                 .why_no_device = "the host copies its messages",
                 .make = make_shm_endpoint},
    EndpointInfo{.name = "tcp",
                 .listens = true,
                 .automatic_for = AutomaticFor::nodes_on_hosts,
                 .descriptors = {.own = 12, .per_peer = 1},
                 .why_no_device = "sockets read and write the host's memory",
                 .make = make_tcp_endpoint},
    EndpointInfo{.name = "ucx",
                 .library = {.title = "UCX", .packages = "libucx-dev"},
                 .descriptors = {.own = 16, .per_peer = 1}},
    EndpointInfo{.name = "mpi",
                 .needs_job = true,
                 .sums_itself = true,
                 .automatic_for = AutomaticFor::job_on_hosts,
                 .library = {.title = "MPI", .packages = "libopenmpi-dev", .global_symbols = true}},
};

}  // namespace

std::span<const EndpointInfo> endpoint_infos() { return kRows; }

const EndpointInfo* find_endpoint(std::string_view name) {
  const auto* const row = std::ranges::find(kRows, name, &EndpointInfo::name);
  return row == kRows.end() ? nullptr : row;
}

const EndpointInfo& endpoint_info(std::string_view name) {
  if (const auto* const row = find_endpoint(name)) return *row;
  throw std::out_of_range(fmt::format("no endpoint is called '{}'", name));
}

std::uint64_t open_files_needed(const EndpointInfo& info, std::uint64_t endpoints_here, std::uint64_t endpoints) {
  constexpr std::uint64_t kOfProcess = 32;  // standard streams, the control plane, the data set
  const auto peers = endpoints - std::min<std::uint64_t>(endpoints, 1);
  return kOfProcess + endpoints_here * (info.descriptors.own + info.descriptors.per_peer * peers);
}

core::Result<void> check_open_files(const EndpointInfo& info, std::uint64_t endpoints_here, std::uint64_t endpoints,
                                    std::uint64_t limit) {
  const auto needed = open_files_needed(info, endpoints_here, endpoints);
  if (needed <= limit) return {};
  return core::fail(
      core::Errc::config,
      fmt::format(
          "exchange.endpoint = \"{}\" connects each of {} sites with all others: the {} of this process need some {} "
          "open files, and its limit is {}: raise the hard limit (`ulimit -Hn`, LimitNOFILE= of "
          "systemd), or use fewer workers per process",
          info.name, endpoints, endpoints_here, needed, limit));
}

const EndpointInfo& automatic_endpoint(bool one_host, bool in_job) {
  const auto run = one_host ? AutomaticFor::one_host
                   : in_job ? AutomaticFor::job_on_hosts
                            : AutomaticFor::nodes_on_hosts;
  return *std::ranges::find(kRows, run, &EndpointInfo::automatic_for);
}

void EndpointRegistry::put(Entry entry) {
  const auto same = std::ranges::find(entries_, entry.name, &Entry::name);
  if (same == entries_.end())
    entries_.push_back(std::move(entry));
  else
    *same = std::move(entry);
}

void EndpointRegistry::add(std::string name, Make make) { put({std::move(name), std::move(make), {}}); }

void EndpointRegistry::add_absent(std::string name, std::string why) { put({std::move(name), {}, std::move(why)}); }

std::string EndpointRegistry::available() const {
  std::vector<std::string_view> names;
  for (const Entry& e : entries_)
    if (e.make) names.push_back(e.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const std::string& EndpointRegistry::absence(std::string_view name) const {
  const auto entry = std::ranges::find(entries_, name, &Entry::name);
  if (entry == entries_.end()) throw std::out_of_range(fmt::format("no endpoint is called '{}'", name));
  return entry->absent;
}

core::Result<std::unique_ptr<Endpoint>> EndpointRegistry::make(std::string_view name,
                                                               const EndpointOptions& options) const {
  if (!options.completions) throw std::invalid_argument("endpoint options: completions is not set");
  if (options.credit.messages == 0 || options.credit.bytes == 0)
    throw std::invalid_argument("endpoint options: a credit of zero would refuse every send");
  const auto entry = std::ranges::find(entries_, name, &Entry::name);
  if (entry == entries_.end())
    return core::fail(core::Errc::config, fmt::format("there is no endpoint '{}': use one of {}", name, available()));
  if (!entry->make)
    return core::fail(core::Errc::config, fmt::format("endpoint '{}' is not in this build ({}): use one of {}", name,
                                                      entry->absent, available()));
  return options.device ? make_staged_endpoint(entry->make, options) : entry->make(options);
}

void add_module(EndpointRegistry& registry, const EndpointInfo& info) {
  const std::string kind(info.name);
  if (!find_module(kind))
    return registry.add_absent(
        kind, fmt::format("troupe_{}.so is missing: install {} and build again", kind, info.library.packages));
  const auto symbols = info.library.global_symbols ? Symbols::global : Symbols::local;
  registry.add(kind, [=](const EndpointOptions& options) { return make_module_endpoint(kind, symbols, options); });
}

DeviceSupport device_support(const EndpointInfo& info, const std::string& ucx_transports) {
  if (info.make) return {.takes = info.why_no_device.empty(), .why_not = std::string(info.why_no_device)};
  const auto symbols = info.library.global_symbols ? Symbols::global : Symbols::local;
  const auto module = load_fabric(std::string(info.name), symbols);
  if (!module) return {.takes = false, .why_not = module.error().message};
  DeviceSupport found;
  module->device_support({.transports = ucx_transports}, found);
  return found;
}

std::string ucx_transports_between_hosts() {
  const char* const chosen = std::getenv("UCX_TLS");  // NOLINT(concurrency-mt-unsafe): nothing of ours sets it
  return chosen != nullptr && *chosen != '\0' ? chosen : "tcp,self";
}

EndpointRegistry built_in_endpoints() {
  EndpointRegistry registry;
  for (const auto& info : kRows) {
    if (info.make)
      registry.add(std::string(info.name), info.make);
    else
      add_module(registry, info);
  }
  return registry;
}

core::Result<std::unique_ptr<Endpoint>> make_endpoint(std::string_view name, const EndpointOptions& options) {
  return built_in_endpoints().make(name, options);
}

}  // namespace troupe::transport
