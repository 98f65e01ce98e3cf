#include "experiment/state/vector_memory.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "experiment/state/local_rank.hpp"

namespace troupe::experiment {

DeviceExchange device_exchange(const Settings& settings) {
  const auto backends = settings.backends();
  if (std::ranges::find(backends, "gpu") == backends.end()) return {};
  if (backends.size() > 1) return {.why_not = "some members compute on a CPU"};
  const auto& algorithm = exchange::info(exchange::algorithm_of(settings.exchange.algorithm));
  if ((algorithm.in_mapped_memory && !settings.exchange.map_devices) || algorithm.in_library)
    return {.why_not = fmt::format("exchange.algorithm = \"{}\" sums in host memory", algorithm.name)};
  return {.possible = true, .why_not = {}};
}

VectorMemory vector_memory(nn::Backend& backend, const ExchangePlan& plan, core::Allocator& arenas,
                           core::Allocator& host) {
  const auto in_host = [&](std::string why) { return VectorMemory{.memory = &host, .why_not = std::move(why)}; };
  const bool on_device = arenas.space() == core::MemorySpace::device;
  if (plan.in_place()) {
    if (!backend.capabilities().shares_memory) return in_host("the devices of this process do not share their memory");
    return {.memory = on_device ? &arenas : &host, .why_not = {}};
  }
  if (!on_device) return in_host(plan.on_devices ? "this process has no device" : "");
  if (!plan.on_devices) return in_host("the run exchanges there");
  auto copier = backend.copier_for(arenas);
  if (!copier) return in_host(copier.error().message);
  return {.memory = &arenas, .copier = std::move(*copier), .checksum = backend.checksum_for(arenas), .why_not = {}};
}

MappableMemory mappable_memory(nn::Backend& backend, const Settings& settings, const ExchangePlan& plan,
                               std::uint32_t site, const VectorMemory& memory) {
  const auto not_mapped = [](std::string why) { return MappableMemory{.sharing = {}, .why_not = std::move(why)}; };
  if (!plan.on_devices || !plan.has_neighbours(site)) return {};
  if (!settings.exchange.map_devices) return not_mapped("exchange.map_devices = false");
  if (memory.memory->space() != core::MemorySpace::device) return not_mapped(memory.why_not);
  for (std::size_t w = 0; w < plan.worker_sites.size(); ++w) {
    if (plan.worker_sites[w] != site) continue;
    auto options = settings.compile_options(w);
    options.local_rank = local_rank(settings, plan, static_cast<std::uint32_t>(w));
    if (&backend.arenas(options) != memory.memory) return not_mapped("its workers compute on several devices");
  }
  auto sharing = backend.sharing_for(*memory.memory);
  if (!sharing) return not_mapped(std::move(sharing.error().message));
  // Where a device or its driver cannot export memory, the first attempt says so.
  auto trial = (*sharing)->memory().allocate(core::kAlignment);
  if (!trial) return not_mapped(std::move(trial.error().message));
  const auto handle = (*sharing)->handle_of(*trial);
  (*sharing)->memory().deallocate(*trial, core::kAlignment);
  if (!handle) return not_mapped(handle.error().message);
  return {.sharing = std::move(*sharing), .why_not = {}};
}

core::Allocator& vector_memory(nn::Backend& backend, const ExchangePlan& plan, core::Allocator& host) {
  return plan.in_place() && backend.capabilities().shares_memory ? backend.arenas() : host;
}

std::string planned_exchange(const Settings& settings, const nn::Backend& backend) {
  const auto backends = settings.backends();
  if (std::ranges::find(backends, "gpu") == backends.end()) return {};
  const auto over_sites = device_exchange(settings);
  return fmt::format("vectors are exchanged in {} memory in one process, and over several processes in {}",
                     backend.capabilities().shares_memory ? "device" : "host",
                     over_sites.possible
                         ? "device memory, mapped by the processes of a host where their devices can, else staged "
                           "through page-locked memory where an endpoint cannot reach it"
                         : fmt::format("host memory: {}", over_sites.why_not));
}

std::string describe(const VectorMemory& memory) {
  if (memory.memory->space() == core::MemorySpace::device)
    return "vectors are in device memory, and are exchanged there";
  return fmt::format("vectors are exchanged in host memory, to which devices copy them{}{}",
                     memory.why_not.empty() ? "" : ": ", memory.why_not);
}

}  // namespace troupe::experiment
