#include "experiment/state/vector_memory.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::experiment {

DeviceExchange device_exchange(const Settings& settings) {
  const auto backends = settings.backends();
  if (std::ranges::find(backends, "gpu") == backends.end()) return {};
  if (backends.size() > 1) return {.why_not = "some members compute on a CPU"};
  const auto& algorithm = exchange::info(exchange::algorithm_of(settings.exchange.algorithm));
  if (algorithm.in_mapped_memory || algorithm.in_library)
    return {.why_not = fmt::format("exchange.algorithm = \"{}\" sums in host memory", algorithm.name)};
  return {.possible = true, .why_not = {}};
}

VectorMemory vector_memory(nn::Backend& backend, const ExchangePlan& plan, core::Allocator& arenas,
                           core::Allocator& host) {
  const auto in_host = [&](std::string why) {
    return VectorMemory{.memory = &host, .copier = {}, .why_not = std::move(why)};
  };
  const bool on_device = arenas.space() == core::MemorySpace::device;
  if (plan.in_place()) {
    if (!backend.capabilities().shares_memory) return in_host("the devices of this process do not share their memory");
    return {.memory = on_device ? &arenas : &host, .copier = {}, .why_not = {}};
  }
  if (!on_device) return in_host(plan.on_devices ? "this process has no device" : "");
  if (!plan.on_devices) return in_host("the run exchanges there");
  auto copier = backend.copier_for(arenas);
  if (!copier) return in_host(copier.error().message);
  return {.memory = &arenas, .copier = std::move(*copier), .why_not = {}};
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
                         ? "device memory, staged through page-locked memory where an endpoint cannot reach it"
                         : fmt::format("host memory: {}", over_sites.why_not));
}

std::string describe(const VectorMemory& memory) {
  if (memory.memory->space() == core::MemorySpace::device)
    return "vectors are in device memory, and are exchanged there";
  return fmt::format("vectors are exchanged in host memory, to which devices copy them{}{}",
                     memory.why_not.empty() ? "" : ": ", memory.why_not);
}

}  // namespace troupe::experiment
