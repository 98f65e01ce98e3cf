/// The control plane between processes: publishing an actor at a port, and connecting to one elsewhere. Plain on loopback
/// without TLS files, mutual TLS 1.2 or later with them; off loopback never without (docs/security.md).
///
/// CAF's own ways (middleman().publish, caf_openssl) are not used: they fall back to anonymous ciphers, check no names,
/// block without a deadline and believe any header. Here a connection is made, and checked, before CAF gets it.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>

#include "actors/control/system.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "transport/security/tls_files.hpp"
#include "transport/net/address.hpp"
#include "transport/net/tcp_options.hpp"

namespace troupe::actors {

using transport::HostPort;
/// "10.0.0.1:4242", "[::1]:4242", "node2:4242". Errc::config.
using transport::parse_host_port;
/// By its form: 127.0.0.0/8, ::1 and "localhost". What a name stands for is looked at when it is used.
[[nodiscard]] bool is_loopback(const HostPort& where);

struct NetworkOptions {
  security::TlsFiles tls{};                            // all or none; none: loopback only
  core::Duration heartbeat = std::chrono::seconds{1};  // a peer hears something at least so often; peers agree
  core::Duration lost_after =
      std::chrono::seconds{5};  // a peer that is silent so long is lost, give or take a heartbeat
  /// For a log, at most 11 a second; from any thread, one at a time: must not block.
  std::function<void(const transport::Refusal&)> on_refused{};
};

/// The settings of an actor system that talks to others: middleman, heartbeats, a random node id.
class NetworkConfig : public SystemConfig {
 public:
  explicit NetworkConfig(const NetworkOptions& options);
};

/// Made right after an actor system that talks to others, before anyone is spawned there: at its end it waits, half a minute at most,
/// until all detached actors are gone. The library's broker hears of the end of every actor that others know, takes the news in also when
/// it has stopped listening, and keeps the actor for it: the system would wait for that actor's thread forever. One thread.
class LastToLeave {
 public:
  explicit LastToLeave(caf::actor_system& system) : system_(system), before_(system.detached_actors()) {}
  ~LastToLeave();
  LastToLeave(const LastToLeave&) = delete;
  LastToLeave& operator=(const LastToLeave&) = delete;

 private:
  caf::actor_system& system_;
  std::size_t before_;  // the system's own
};

/// Thread-safe. Ends before its actor system; its ports are closed then, connections stay. A message has 4 MiB at most. Others can talk to actors that
/// are published here, or whose handle they were sent; nobody can spawn here or change the configuration.
class Network {
 public:
  /// `system` was made with a NetworkConfig of the same options. Reads and checks the TLS files, which are not read again.
  /// Errc::config: set half-way, unreadable, expired, not belonging together.
  [[nodiscard]] static core::Result<std::unique_ptr<Network>> create(caf::actor_system& system,
                                                                     const NetworkOptions& options);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Lets others connect to `handle` at `where` (port 0: any free one), and returns the port. The actor is kept alive.
  /// Errc::config: off loopback without TLS, unknown host, port in use, not an address of this host.
  template <class Handle>
  [[nodiscard]] core::Result<std::uint16_t> publish(const Handle& handle, const HostPort& where) {
    return publish(caf::actor_cast<caf::strong_actor_ptr>(handle), system_.message_types(handle), where);
  }

  /// Who is published at `where`. Blocks the thread until it is known, `deadline` at most. Errc::config: off loopback
  /// without TLS, unknown host, TLS refused by either end, an actor of another type; Errc::peer_lost: nobody listens, or it
  /// hung up; Errc::timeout; Errc::interrupted: `stop` was requested. To hear when it is lost, monitor the handle: heartbeats
  /// tell within lost_after.
  template <class Handle>
  [[nodiscard]] core::Result<Handle> connect(const HostPort& where, core::Duration deadline,
                                             const std::stop_token& stop = {}) {
    auto found = connect(system_.message_types<Handle>(), where, deadline, stop);
    if (!found) return tl::unexpected(std::move(found.error()));
    return caf::actor_cast<Handle>(std::move(*found));
  }

 private:
  using Interface = std::set<std::string>;
  struct Parts;

  Network(caf::actor_system& system, std::unique_ptr<Parts> parts);
  [[nodiscard]] core::Result<std::uint16_t> publish(caf::strong_actor_ptr actor, Interface interface,
                                                    const HostPort& where);
  [[nodiscard]] core::Result<caf::strong_actor_ptr> connect(const Interface& wanted, const HostPort& where,
                                                            core::Duration deadline, const std::stop_token& stop);

  caf::actor_system& system_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace troupe::actors
