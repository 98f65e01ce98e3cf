/// Helpers of network_test.cpp: an actor system with its network, raw clients that do not speak CAF, and a second process.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "actors/control/network.hpp"
#include "core/file_descriptor.hpp"
#include "transport/net/tls_connection.hpp"

namespace troupe::actors::testing {

/// Answers Prepare with its name. Quits on Halt.
using Greeter = caf::typed_actor<caf::replies_to<Prepare>::with<SiteAddress>, caf::reacts_to<Halt>>;
/// An actor type that no test serves.
using PendingConnection = caf::typed_actor<caf::replies_to<StateOrder>::with<Settled>>;

/// Upper limit of a wait for an expected event. Generous.
inline constexpr core::Duration kSoon = std::chrono::seconds{30};

/// One actor system with its network. One thread.
class ControlNode {
 public:
  explicit ControlNode(const security::TlsFiles& tls = {}, core::Duration heartbeat = std::chrono::seconds{1},
                       core::Duration lost_after = std::chrono::seconds{5});
  ~ControlNode();
  ControlNode(const ControlNode&) = delete;
  ControlNode& operator=(const ControlNode&) = delete;

  [[nodiscard]] Network& network() { return *network_; }
  [[nodiscard]] caf::actor_system& system() { return system_; }
  /// Spawns and publishes a Greeter on 127.0.0.1. Returns its port.
  std::uint16_t serve(const std::string& name = "a greeter");
  /// The Greeter that serve() made last.
  [[nodiscard]] const Greeter& greeter() const { return greeters_.back(); }
  /// Returns the answer of `greeter`, or the error.
  [[nodiscard]] std::string ask(const Greeter& greeter);
  /// Connects to 127.0.0.1:`port` and asks.
  [[nodiscard]] std::string ask(std::uint16_t port);
  /// Blocks until a connection has been refused and returns the reason. Empty: none was refused in time.
  [[nodiscard]] std::string refusal();
  [[nodiscard]] bool refused_nobody();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> refusals_;
  NetworkOptions options_;
  NetworkConfig config_;
  caf::actor_system system_;
  std::unique_ptr<Network> network_;
  std::vector<Greeter> greeters_;
};

/// A connection to 127.0.0.1:`port`; reads give up after 10 s.
[[nodiscard]] core::FileDescriptor connected(std::uint16_t port);
/// Sends `bytes` to 127.0.0.1:`port` and returns what comes back until the peer closes. With empty `bytes` it returns the peer's
/// first bytes.
std::string say(std::uint16_t port, std::string_view bytes);
/// As say(), over TLS with the certificate in `tls` (an empty `tls`: without a certificate). Empty result: the connection was refused.
[[nodiscard]] std::string say_over_tls(std::uint16_t port, const security::TlsFiles& tls, std::string_view bytes);
/// A port without a listener.
[[nodiscard]] std::uint16_t free_port();

/// A TCP port that completes connections in its backlog and never sends a byte.
class SilentPort {
 public:
  SilentPort();
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  core::FileDescriptor socket_;
  std::uint16_t port_ = 0;
};

/// Connects to a Greeter and monitors it.
class Watch {
 public:
  Watch(ControlNode& node, std::uint16_t port);
  [[nodiscard]] std::string answer() { return node_.ask(greeter_); }
  /// Blocks until the Greeter is down. False: it did not go down in time.
  [[nodiscard]] bool down();

 private:
  ControlNode& node_;
  caf::scoped_actor self_;
  Greeter greeter_;
};

/// This test program as a second process, which serves a Greeter. The destructor kills it.
class OtherProcess {
 public:
  explicit OtherProcess(const security::TlsFiles& tls);
  ~OtherProcess();
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  void signal(int number) const;

 private:
  pid_t pid_ = -1;
  int input_ = -1;  // the process ends when this pipe closes
  std::uint16_t port_ = 0;
};

}  // namespace troupe::actors::testing
