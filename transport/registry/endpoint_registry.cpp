#include "transport/registry/endpoint_registry.hpp"

#include <algorithm>
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

void add_module(EndpointRegistry& registry, const std::string& kind, std::string_view packages) {
  if (find_module(kind))
    registry.add(kind, [kind](const EndpointOptions& options) { return make_module_endpoint(kind, options); });
  else
    registry.add_absent(kind, fmt::format("troupe_{}.so is missing: install {} and build again", kind, packages));
}

EndpointRegistry built_in_endpoints() {
  EndpointRegistry registry;
  registry.add("inproc", make_inproc_endpoint);
  registry.add("shm", make_shm_endpoint);
  registry.add("tcp", make_tcp_endpoint);
  add_module(registry, "ucx", "libucx-dev");
  add_module(registry, "mpi", "libopenmpi-dev");
  return registry;
}

core::Result<std::unique_ptr<Endpoint>> make_endpoint(std::string_view name, const EndpointOptions& options) {
  return built_in_endpoints().make(name, options);
}

}  // namespace troupe::transport
