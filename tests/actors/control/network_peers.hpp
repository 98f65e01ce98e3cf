/// What network_test.cpp talks to: a process' worth of actors, a visitor who speaks no CAF, and another process.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "actors/control/network.hpp"
#include "transport/net/connection.hpp"

namespace troupe::actors::testing {

/// Answers Prepare with its name. Quits on Halt.
using Greeter = caf::typed_actor<caf::replies_to<Prepare>::with<SiteAddress>, caf::reacts_to<Halt>>;
/// Another type.
using Stranger = caf::typed_actor<caf::replies_to<StateOrder>::with<Settled>>;

/// Generous: tests wait so long for what should happen.
inline constexpr core::Duration kSoon = std::chrono::seconds{30};

/// One actor system with its network. One thread.
class Node {
 public:
  explicit Node(const security::TlsFiles& tls = {}, core::Duration heartbeat = std::chrono::seconds{1},
                core::Duration lost_after = std::chrono::seconds{5});
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] Network& network() { return *network_; }
  [[nodiscard]] caf::actor_system& system() { return system_; }
  /// Of a Greeter that is published on 127.0.0.1.
  std::uint16_t serve(const std::string& name = "a greeter");
  /// The last one that serves.
  [[nodiscard]] const Greeter& greeter() const { return greeters_.back(); }
  /// What `greeter` answers, or why not.
  [[nodiscard]] std::string ask(const Greeter& greeter);
  /// Connects to 127.0.0.1 and asks.
  [[nodiscard]] std::string ask(std::uint16_t port);
  /// Blocks until somebody has been refused, and returns why; empty when nobody was.
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
[[nodiscard]] Descriptor connected(std::uint16_t port);
/// Says `bytes` to 127.0.0.1:`port` and returns what comes back until the other hangs up; what it says first, when `bytes`
/// is empty.
std::string say(std::uint16_t port, std::string_view bytes);
/// As say(), over TLS with the certificate in `tls` (none: without one). Empty: was not let in.
[[nodiscard]] std::string say_over_tls(std::uint16_t port, const security::TlsFiles& tls, std::string_view bytes);
/// A port at which nobody listens.
[[nodiscard]] std::uint16_t free_port();

/// Accepts in its backlog, and never says a word.
class SilentPort {
 public:
  SilentPort();
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  Descriptor socket_;
  std::uint16_t port_ = 0;
};

/// Connects to a Greeter and monitors it.
class Watch {
 public:
  Watch(Node& node, std::uint16_t port);
  [[nodiscard]] std::string answer() { return node_.ask(greeter_); }
  /// Blocks until it is down; false when it never was.
  [[nodiscard]] bool down();

 private:
  Node& node_;
  caf::scoped_actor self_;
  Greeter greeter_;
};

/// This program once more, as another process that serves a Greeter. Killed at the end.
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
  int input_ = -1;  // it ends with this
  std::uint16_t port_ = 0;
};

}  // namespace troupe::actors::testing
