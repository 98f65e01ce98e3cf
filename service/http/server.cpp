#include "service/http/server.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "service/http/connections.hpp"
#include "service/http/session.hpp"

namespace troupe::service {
namespace {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;

constexpr std::chrono::milliseconds kPause{200};  // after descriptors or memory ran out
constexpr rlim_t kOtherFiles = 128;               // descriptors for other things than connections
constexpr std::size_t kMostRefusals = 64;         // connections that are told why; others are closed

std::size_t possible_connections(std::size_t wanted) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return wanted;
  const auto most = files.rlim_cur > 2 * kOtherFiles ? files.rlim_cur - kOtherFiles : files.rlim_cur / 2;
  return std::min<std::size_t>(wanted, most);
}

bool ran_out(const error_code& error) {
  return error == net::error::no_descriptors || error == net::error::no_memory ||
         error == net::error::no_buffer_space || error.value() == ENFILE;
}

}  // namespace

class HttpServer::Io {
 public:
  Io(ServerSetup setup, const Router& router, Counters& counters)
      : shared_(std::make_shared<Connections>(std::move(setup), router, counters)),
        connections_(*shared_),
        acceptor_(connections_.io),
        pause_(connections_.io) {
    connections_.setup.limits.connections = possible_connections(connections_.setup.limits.connections);
  }

  core::Result<void> listen() {
    const auto& at = connections_.setup.listen;
    const auto text = fmt::format("{}:{}", transport::bracketed(at.host), at.port);
    const auto fail = [&](const error_code& error) {
      if (error == net::error::address_in_use)
        return core::fail(
            core::Errc::config,
            fmt::format("--listen {}: another program listens there: stop it, or name another port", text));
      return core::fail(core::Errc::config, fmt::format("--listen {}: {}", text, error.message()));
    };
    error_code error;
    const auto address = net::ip::make_address(at.host, error);
    if (error) return fail(error);
    const tcp::endpoint endpoint(address, at.port);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(net::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(net::socket_base::max_listen_connections, error);
    if (error) return fail(error);
    port_ = acceptor_.local_endpoint(error).port();
    if (error) return fail(error);
    accept();
    thread_ = std::thread([this] { connections_.io.run(); });
    return {};
  }

  void stop() {
    if (!thread_.joinable()) return;
    net::post(connections_.io, [this] {
      error_code ignored;
      acceptor_.close(ignored);
      pause_.cancel(ignored);
      const auto sessions = connections_.sessions;
      for (auto* session : sessions) session->close();
      connections_.io.stop();
    });
    thread_.join();
  }

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  void accept() {
    acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (!error) begin(std::move(socket));
      if (error && ran_out(error)) {
        pause_.expires_after(kPause);
        pause_.async_wait([this](const error_code& stopped) {
          if (!stopped) accept();
        });
        return;
      }
      accept();
    });
  }

  void begin(tcp::socket socket) {
    error_code error;
    const auto peer = socket.remote_endpoint(error);
    if (error) return;
    ++connections_.counters.connections;
    socket.set_option(tcp::no_delay(true), error);
    const auto address = peer.address().to_string();
    auto welcome = Welcome::served;
    if (connections_.addresses.connections() >= connections_.setup.limits.connections)
      welcome = Welcome::too_many;
    else if (connections_.addresses.enter(address) == AddressLimits::Admission::too_many)
      welcome = Welcome::too_many_of_address;
    if (welcome != Welcome::served) {
      ++connections_.counters.refused;
      if (connections_.sessions.size() >= connections_.addresses.connections() + kMostRefusals) return;
    }
    start_session(std::move(socket), address, connections_, welcome);
  }

  std::shared_ptr<Connections> shared_;
  Connections& connections_;
  tcp::acceptor acceptor_;
  net::steady_timer pause_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

HttpServer::HttpServer(std::unique_ptr<Io> io) : io_(std::move(io)) {}
HttpServer::~HttpServer() { stop(); }

core::Result<std::unique_ptr<HttpServer>> HttpServer::start(ServerSetup setup, const Router& router,
                                                            Counters& counters) {
  auto io = std::make_unique<Io>(std::move(setup), router, counters);
  if (auto listening = io->listen(); !listening) return tl::unexpected(listening.error());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(io)));
}

std::uint16_t HttpServer::port() const noexcept { return io_->port(); }
void HttpServer::stop() { io_->stop(); }

}  // namespace troupe::service
