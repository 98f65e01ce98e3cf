/// The HTTP/1.1 server: one thread that carries all connections, and the workers on which handlers run. It keeps Beast and Asio out of all
/// other headers. Thread rule: start() and stop() by one thread; the other methods by any.
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "service/http/limits.hpp"
#include "service/http/router.hpp"
#include "service/http/worker.hpp"
#include "transport/net/address.hpp"

namespace troupe::service {

/// What the server has done, for /metrics. Any thread.
struct Counters {
  std::array<std::atomic<std::uint64_t>, 600> answers{};  // by status
  std::atomic<std::uint64_t> connections{0};              // that were accepted
  std::atomic<std::uint64_t> refused{0};                  // of them, as too many
  std::atomic<std::int64_t> open{0};
  std::atomic<std::int64_t> streams{0};  // open streams of events
};

/// Decides on the connections' thread whether a request may be answered: sets its user and role, or returns the refusal. `route`: null if
/// there is none. It must not block.
using Gate = std::function<std::optional<Response>(Request& request, const Route* route)>;

struct ServerSetup {
  transport::HostPort listen;  // an IP address; port 0: any that is free
  Limits limits{};
  std::shared_ptr<SSL_CTX> tls{};  // null: no TLS
  Gate gate{};
  std::map<Where, Worker*> workers{};  // they outlive the server; a Where without one runs on the connections' thread
};

class HttpServer {
 public:
  /// Listens when it returns. `router` and `counters` outlive it. Errc::config: the address cannot be used, or its port is taken.
  [[nodiscard]] static core::Result<std::unique_ptr<HttpServer>> start(ServerSetup setup, const Router& router,
                                                                       Counters& counters);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept;
  /// Closes all connections, also those that wait for an answer.
  void stop();

 private:
  class Io;
  explicit HttpServer(std::unique_ptr<Io> io);
  std::unique_ptr<Io> io_;
};

}  // namespace troupe::service
