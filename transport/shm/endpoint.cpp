#include "transport/shm/endpoint.hpp"

#include <limits>
#include <utility>

#include "transport/common/endpoint_of.hpp"
#include "transport/mapped_memory.hpp"
#include "transport/shm/endpoint_impl.hpp"

namespace troupe::transport {
namespace {

Capabilities capabilities() {
  return {.name = "shm",
          .spaces = {core::MemorySpace::host, core::MemorySpace::host_shared, core::MemorySpace::host_pinned},
          .max_message_bytes = std::numeric_limits<std::ptrdiff_t>::max(),
          .ordering = Ordering::per_tag,  // a short message may overtake a long one
          .maps_peer_memory = true,
          .between_hosts = false,
          .encrypted = false};
}

}  // namespace

core::Result<std::unique_ptr<Endpoint>> make_shm_endpoint(const EndpointOptions& options) {
  auto member = ShmEndpointImpl::create(options);
  if (!member) return tl::unexpected(member.error());
  auto& its = **member;
  return std::make_unique<EndpointOf<ShmEndpointImpl>>(
      std::move(*member), EndpointOf<ShmEndpointImpl>::Face{.capabilities = capabilities(),
                                                            .address = {its.self().address.text()},
                                                            .completions = its.self().completions.get(),
                                                            .mapped_memory = &its.arenas()});
}

}  // namespace troupe::transport
