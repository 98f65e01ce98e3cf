#include "actors/deployment/pinning.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/affinity/binding.hpp"

namespace troupe::actors {

namespace {

constexpr std::string_view kNotPinned = "workers are not pinned: ";

/// Hosts are numbered by site; without numbers all sites are on one.
std::uint32_t host_of(const ExchangePlan& exchange, std::uint32_t site) {
  return site < exchange.site_hosts.size() ? exchange.site_hosts[site] : 0;
}

/// Threads that decode for these workers: each site's own, or, with one, the loaders themselves.
std::size_t decoding_threads(const ExchangePlan& exchange, const std::vector<std::uint32_t>& workers,
                             std::int64_t at_a_site) {
  if (at_a_site == 1) return workers.size();
  std::set<std::uint32_t> sites;
  for (const auto worker : workers)
    sites.insert(worker < exchange.worker_sites.size() ? exchange.worker_sites[worker] : 0);
  return sites.size() * static_cast<std::size_t>(at_a_site);
}

const char* environment(const char* name) { return std::getenv(name); }

}  // namespace

std::vector<std::uint32_t> workers_on_host(const ExchangePlan& exchange, std::uint32_t workers, std::uint32_t site) {
  std::vector<std::uint32_t> here;
  for (std::uint32_t worker = 0; worker < workers; ++worker)
    if (worker >= exchange.worker_sites.size() ||
        host_of(exchange, exchange.worker_sites[worker]) == host_of(exchange, site))
      here.push_back(worker);
  return here;
}

std::string pinning_obstacle(const core::Result<core::Machine>& machine, bool tells_waits,
                             const char* (*variable)(const char*)) {
  if (!machine) return machine.error().message;
  for (const auto* name : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"}) {
    const auto* value = variable(name);
    if (value != nullptr && *value != '\0' && std::string_view(value) != "false")
      return fmt::format("{} is set, and OpenMP places threads by it", name);
  }
  if (!tells_waits) return "this kernel does not say how long threads wait for a cpu (/proc/self/schedstat)";
  return {};
}

SitePinning pin_site(const Settings& settings, const ExchangePlan& exchange, std::uint32_t site,
                     const std::vector<std::uint32_t>& workers, const core::Machine& machine,
                     const core::Cpus& usable) {
  const auto neighbours = workers_on_host(exchange, static_cast<std::uint32_t>(settings.cluster.workers), site);
  std::vector<unsigned> threads;
  for (const auto worker : neighbours) threads.push_back(static_cast<unsigned>(settings.threads(worker)));
  const auto decoders = decoding_threads(exchange, neighbours, settings.data.decode_threads);
  const auto assignment = core::assign(machine, usable, threads, decoders);
  if (!assignment.reason.empty())
    return {.workers = {}, .loaders = {}, .text = std::string(kNotPinned) + assignment.reason};
  SitePinning pinning{.workers = {}, .loaders = assignment.helpers, .text = {}};
  std::vector<std::string> texts;
  for (const auto worker : workers) {
    const auto place = std::ranges::lower_bound(neighbours, worker) - neighbours.begin();
    pinning.workers.push_back(assignment.workers.at(static_cast<std::size_t>(place)));
    texts.push_back(core::describe(machine, worker, pinning.workers.back()));
  }
  pinning.text = fmt::format("{}", fmt::join(texts, ", "));
  return pinning;
}

SitePinning pin_site(const Settings& settings, const ExchangePlan& exchange, std::uint32_t site,
                     const std::vector<std::uint32_t>& workers) {
  if (settings.cluster.pinning == "off" || workers.empty()) return {};
  const auto& machine = core::this_machine();
  if (const auto obstacle = pinning_obstacle(machine, core::tells_waits(), environment); !obstacle.empty())
    return {.workers = {}, .loaders = {}, .text = std::string(kNotPinned) + obstacle};
  return pin_site(settings, exchange, site, workers, *machine, core::usable_cpus());
}

std::string pinning_note(const std::vector<std::string>& texts) {
  std::vector<std::string> pinned, others;
  for (const auto& text : texts) {
    auto& list = text.starts_with(kNotPinned) ? others : pinned;
    if (!text.empty() && std::ranges::find(list, text) == list.end()) list.push_back(text);
  }
  if (!pinned.empty()) others.insert(others.begin(), fmt::format("pinned: {}", fmt::join(pinned, ", ")));
  return fmt::format("{}", fmt::join(others, "; "));
}

}  // namespace troupe::actors
