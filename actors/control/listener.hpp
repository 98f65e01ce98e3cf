/// Listens for other processes, does the TLS handshake, and gives accepted connections to CAF. It has its own thread: a silent pending
/// connection costs one socket until its deadline, and CAF never gets it. Thread rule: thread-safe. The destructor ends the thread and
/// closes the ports; connections that CAF has stay open.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/io/fwd.hpp>

#include "actors/control/peers.hpp"
#include "transport/net/connector.hpp"
#include "transport/net/refusal_reporter.hpp"
#include "transport/net/tls_connection.hpp"

namespace troupe::actors {

class Listener {
 public:
  struct Setup {
    caf::io::network::default_multiplexer* multiplexer = nullptr;
    caf::actor broker;                            // CAF's BASP broker
    std::shared_ptr<SSL_CTX> tls;                 // null: plain
    std::shared_ptr<ControlPeers> peers;          // of this process
    transport::RefusalReporter::Hook on_refused;  // one thread at a time
  };
  /// The actor that is published at a port.
  struct Host {
    caf::strong_actor_ptr actor;
    std::set<std::string> interface;
  };

  explicit Listener(Setup setup);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Listens at the first of `addresses` that this host has, and returns the port. Errc::config: in use, not this host's, not allowed.
  [[nodiscard]] core::Result<std::uint16_t> open(const transport::HostPort& where,
                                                 const std::vector<transport::SocketAddress>& addresses, Host host);

 private:
  struct Port;
  struct PendingConnection;

  void run();
  void wake() const;
  void accept(const std::shared_ptr<const Port>& port);
  [[nodiscard]] bool advance(PendingConnection& pending_connection);
  void admit(PendingConnection& pending_connection);
  void refuse(const std::string& from, const std::string& why) const;

  Setup setup_;
  const std::shared_ptr<transport::RefusalReporter> refusals_;  // shared: connections may outlive the listener
  core::FileDescriptor wake_;
  std::vector<std::unique_ptr<PendingConnection>> pending_connections_;  // used by the thread only
  bool exhausted_ = false;                                               // by the thread only: no free descriptors
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Port>> ports_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace troupe::actors
