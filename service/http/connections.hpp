/// What the sessions of one server share. Thread rule: the connections' thread, but for what is atomic.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "service/http/address_limits.hpp"
#include "service/http/server.hpp"

namespace troupe::service {

class OpenSession {
 public:
  virtual ~OpenSession() = default;
  /// Closes the connection now.
  virtual void close() = 0;
  /// Events wait for it.
  virtual void wake() = 0;
};

/// Sessions for which a producer has events. They are woken together: one task and one wake-up of the connections' thread for all clients
/// of an event. Thread-safe.
class Woken {
 public:
  /// Returns whether none waited: then the caller posts wake_all().
  [[nodiscard]] bool add(std::weak_ptr<OpenSession> session);
  void wake_all();

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<OpenSession>> sessions_;
};

/// Handlers on workers share it: their answers may come when the server is gone.
struct Connections : std::enable_shared_from_this<Connections> {
  Connections(ServerSetup given, const Router& table, Counters& count)
      : setup(std::move(given)), router(table), counters(count), addresses(setup.limits) {}

  ServerSetup setup;
  const Router& router;
  Counters& counters;
  AddressLimits addresses;
  std::unordered_set<OpenSession*> sessions;
  Woken woken;
  boost::asio::io_context io{1};  // last: it ends the sessions, which use the members above
};

}  // namespace troupe::service
