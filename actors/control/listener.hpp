/// Where others knock: listens, does the TLS handshake, and hands who is let in to CAF. All on a thread of its own, so that
/// a stranger who says nothing costs a socket and a deadline, and CAF never hears of him. Thread rule: thread-safe. Ends its
/// thread and closes its ports when destroyed; connections that CAF has stay.
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

#include "transport/net/connection.hpp"
#include "transport/net/connector.hpp"
#include "actors/control/peers.hpp"
#include "transport/net/refusal_reporter.hpp"

namespace troupe::actors {

class WireDoor {
 public:
  struct Setup {
    caf::io::network::default_multiplexer* multiplexer = nullptr;
    caf::actor broker;                            // of CAF: who speaks its protocol
    std::shared_ptr<SSL_CTX> tls;                 // null: plain
    std::shared_ptr<WirePeers> peers;             // of this process
    transport::RefusalReporter::Hook on_refused;  // one thread at a time
  };
  /// Who is met behind a port.
  struct Host {
    caf::strong_actor_ptr actor;
    std::set<std::string> interface;
  };

  explicit WireDoor(Setup setup);
  ~WireDoor();
  WireDoor(const WireDoor&) = delete;
  WireDoor& operator=(const WireDoor&) = delete;

  /// Listens at the first of `addresses` that this host has (Errc::config: in use, not this host's, not allowed) and returns the port.
  [[nodiscard]] core::Result<std::uint16_t> open(const transport::HostPort& where,
                                                 const std::vector<SocketAddress>& addresses, Host host);

 private:
  struct Port;
  struct Stranger;

  void run();
  void wake() const;
  void accept(const std::shared_ptr<const Port>& port);
  [[nodiscard]] bool advance(Stranger& stranger);
  void admit(Stranger& stranger);
  void refuse(const std::string& from, const std::string& why) const;

  Setup setup_;
  const std::shared_ptr<transport::RefusalReporter> refusals_;  // of connections that outlive this, too
  Descriptor wake_;
  std::vector<std::unique_ptr<Stranger>> strangers_;  // of the thread
  bool exhausted_ = false;                            // of the thread: no descriptors are left
  std::mutex mutex_;
  std::vector<std::shared_ptr<const Port>> ports_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace troupe::actors
