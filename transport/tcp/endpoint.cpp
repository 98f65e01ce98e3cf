#include "transport/tcp/endpoint.hpp"

#include <limits>
#include <stdexcept>
#include <utility>

#include "transport/common/endpoint_of.hpp"
#include "transport/tcp/endpoint_impl.hpp"

namespace troupe::transport {
namespace {

Capabilities capabilities(bool encrypted) {
  return {.name = "tcp",
          .spaces = {core::MemorySpace::host, core::MemorySpace::host_shared, core::MemorySpace::host_pinned},
          .max_message_bytes = std::numeric_limits<std::ptrdiff_t>::max(),
          .ordering = Ordering::per_tag,
          .maps_peer_memory = false,
          .between_hosts = encrypted,
          .encrypted = encrypted};
}

}  // namespace

core::Result<std::unique_ptr<Endpoint>> make_tcp_endpoint(const EndpointOptions& options) {
  if (options.tcp.heartbeat <= core::Duration{0} || options.tcp.lost_after < options.tcp.heartbeat)
    throw std::invalid_argument("endpoint options: tcp needs a heartbeat above 0, and at most lost_after");
  auto member = TcpEndpointImpl::create(options);
  if (!member) return tl::unexpected(member.error());
  auto& its = **member;
  return std::make_unique<EndpointOf<TcpEndpointImpl>>(
      std::move(*member),
      EndpointOf<TcpEndpointImpl>::Face{
          .capabilities = capabilities(its.encrypted()), .address = its.address(), .completions = &its.completions()});
}

}  // namespace troupe::transport
