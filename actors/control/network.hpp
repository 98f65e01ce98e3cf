/// The control plane between processes: publishes an actor at a port, and connects to an actor of another process. With TLS files it uses
/// mutual TLS 1.2 or later. Without them it works on loopback only, unencrypted (docs/security.md).
///
/// CAF's own functions (middleman().publish, caf_openssl) are not used: they fall back to anonymous ciphers, check no names,
/// block without a deadline and accept any header. Here a connection is made and checked before CAF gets it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>

#include "actors/control/system.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "transport/net/address.hpp"
#include "transport/net/tcp_options.hpp"
#include "transport/security/tls_files.hpp"

namespace troupe::actors {

using transport::HostPort;
/// "10.0.0.1:4242", "[::1]:4242", "node2:4242". Errc::config.
using transport::parse_host_port;
/// Checks the text only: 127.0.0.0/8, ::1 and "localhost". Other names are resolved, and checked again, when they are used.
[[nodiscard]] bool is_loopback(const HostPort& where);

struct NetworkOptions {
  security::TlsFiles tls{};                            // all or none; none: loopback only
  core::Duration heartbeat = std::chrono::seconds{1};  // longest time without a message to a peer; equal on all peers
  core::Duration lost_after =
      std::chrono::seconds{5};  // a peer is lost after so long a silence, give or take one heartbeat
  /// For a log: at most 11 calls a second, from any thread, one at a time. Must not block.
  std::function<void(const transport::RefusedConnection&)> on_refused{};
};

/// The settings of an actor system that is part of a network: middleman, heartbeats, a random node id.
class NetworkConfig : public SystemConfig {
 public:
  explicit NetworkConfig(const NetworkOptions& options);
};

/// Waits in its destructor, at most `most`, until all actors have ended. Make it right after an actor system, before any actor is
/// spawned. Two reasons. CAF's broker gets a message about the end of each actor that other nodes know, also after the broker has stopped.
/// That message keeps the actor alive, and the actor system would wait for the thread of a detached one forever. And an actor may wait for
/// something that never answers, such as a device that hangs, or hold a request that nobody answers any more: for this one `on_late` is
/// called, which should end the process, because the actor system's destructor has no deadline. One thread.
class ActorsWait {
 public:
  explicit ActorsWait(caf::actor_system& system, std::function<void()> on_late = nullptr,
                      core::Duration most = std::chrono::seconds{30})
      : system_(system), on_late_(std::move(on_late)), most_(most), before_(counts()) {}
  ~ActorsWait();
  /// Any thread. Waits at least `most`, where that is longer: actors wait for programs of users.
  void allow(core::Duration most) noexcept;
  ActorsWait(const ActorsWait&) = delete;
  ActorsWait& operator=(const ActorsWait&) = delete;

 private:
  struct Counts {
    std::size_t detached = 0, running = 0;  // a detached actor that has ended may still have its thread
  };
  [[nodiscard]] Counts counts() const { return {system_.detached_actors(), system_.registry().running()}; }

  caf::actor_system& system_;
  std::function<void()> on_late_;
  std::atomic<core::Duration> most_;
  Counts before_;  // of the system itself
};

/// Thread-safe. Must be destroyed before its actor system: that closes its ports, and connections stay. A message has at most 4 MiB. Other
/// processes reach only actors that are published here or whose handle they got. They cannot spawn actors or change the configuration.
class Network {
 public:
  /// REQUIRES: `system` was made with a NetworkConfig of the same options. Reads and checks the TLS files, once.
  /// Errc::config: the files are incomplete, unreadable, expired, or do not belong together.
  [[nodiscard]] static core::Result<std::unique_ptr<Network>> create(caf::actor_system& system,
                                                                     const NetworkOptions& options);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Publishes `handle` at `where` (port 0: any free port), and returns the port. Keeps the actor alive.
  /// Errc::config: off loopback without TLS, unknown host, port in use, not an address of this host.
  template <class Handle>
  [[nodiscard]] core::Result<std::uint16_t> publish(const Handle& handle, const HostPort& where) {
    return publish(caf::actor_cast<caf::strong_actor_ptr>(handle), system_.message_types(handle), where);
  }

  /// Returns the actor that is published at `where`. Blocks the thread, at most for `deadline`. Errc::config: off loopback without TLS,
  /// unknown host, TLS refused by either end, an actor of another type. Errc::peer_lost: no process listens there, or it closed the
  /// connection. Errc::timeout. Errc::interrupted: `stop` was requested. To get notice of its loss, monitor the handle: heartbeats
  /// detect a loss within lost_after.
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
