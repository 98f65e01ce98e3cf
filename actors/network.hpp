#pragma once
#include <caf/io/all.hpp>

#include "actors/system.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "security/tls_files.hpp"
#include "transport/tcp_address.hpp"

namespace troupe::actors {
using transport::HostPort;
using transport::parse_host_port;
[[nodiscard]] inline bool is_loopback(const HostPort& where) { return transport::is_loopback(where.host); }
struct NetworkOptions {
  security::TlsFiles tls{};
};
class NetworkConfig : public SystemConfig {
 public:
  explicit NetworkConfig(const NetworkOptions&) {
    load<caf::io::middleman>();
    set("middleman.heartbeat-interval", 1000);
    set("middleman.connection-timeout", 5000);
  }
};
class Network {
 public:
  static core::Result<std::unique_ptr<Network>> create(caf::actor_system& system, const NetworkOptions&) {
    return std::make_unique<Network>(system);
  }
  explicit Network(caf::actor_system& system) : system_(system) {}
  template <class Handle>
  core::Result<std::uint16_t> publish(const Handle& handle, const HostPort& where) {
    auto port = system_.middleman().publish(handle, where.port, where.host.c_str(), true);
    if (!port) return core::fail(core::Errc::config, system_.render(port.error()));
    return *port;
  }
  template <class Handle>
  core::Result<Handle> connect(const HostPort& where, core::Duration) {
    auto found = system_.middleman().remote_actor<Handle>(where.host, where.port);
    if (!found) return core::fail(core::Errc::peer_lost, system_.render(found.error()));
    return *found;
  }

 private:
  caf::actor_system& system_;
};
}  // namespace troupe::actors
