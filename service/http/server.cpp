#include "service/http/server.hpp"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <thread>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "core/file_descriptor.hpp"
#include "service/http/connections.hpp"
#include "service/http/session.hpp"

namespace troupe::service {
namespace {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;

constexpr std::chrono::milliseconds kPause{200};  // after descriptors or memory ran out
constexpr rlim_t kOtherFiles = 128;               // descriptors for other things than connections
constexpr int kBacklog = 1024;                    // that wait to be accepted; beyond it their systems try again
constexpr int kMostAccepted = 64;                 // at once, before the sessions have their turn

// Refusing takes time that a training could have. After some were refused the service rests, and what comes meanwhile waits.
constexpr int kRestFactor = 30;  // times the processor's time that it took
constexpr std::chrono::nanoseconds kShortestRest = std::chrono::milliseconds(5);
constexpr std::chrono::milliseconds kTellEvery{20};  // one of them why it is refused, which costs more than to close it
constexpr std::size_t kMostBeingTold = 64;

std::chrono::nanoseconds used_by_this_thread() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

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
    if (!error) acceptor_.listen(kBacklog, error);
    if (!error) acceptor_.non_blocking(true, error);
    if (error) return fail(error);
    port_ = acceptor_.local_endpoint(error).port();
    if (error) return fail(error);
    accept();
    thread_ = std::thread([this] {
      work_in_background();
      connections_.io.run();
    });
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
    acceptor_.async_wait(tcp::acceptor::wait_read, [this](const error_code&) {
      if (acceptor_.is_open()) accept_waiting();
    });
  }

  void accept_after(std::chrono::nanoseconds pause) {
    pause_.expires_after(pause);
    pause_.async_wait([this](const error_code& stopped) {
      if (!stopped && acceptor_.is_open()) accept_waiting();
    });
  }

  void accept_waiting() {
    const auto before = used_by_this_thread();
    refused_ = 0;
    for (int count = 0; count < kMostAccepted; ++count) {
      error_code error;
      tcp::endpoint peer;
      // Not Asio's accept: that tells its reactor of the socket, also where it is closed at once.
      core::FileDescriptor socket(accept_now(peer, error));
      if (error == net::error::would_block) break;
      if (error && ran_out(error)) return accept_after(kPause);
      if (!error) begin(std::move(socket), peer);
    }
    if (refused_ > 0) return accept_after(std::max(kShortestRest, kRestFactor * (used_by_this_thread() - before)));
    accept();
  }

  int accept_now(tcp::endpoint& peer, error_code& error) {
    auto size = static_cast<socklen_t>(peer.capacity());
    const int socket = ::accept4(acceptor_.native_handle(), peer.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0)
      error.assign(errno == EWOULDBLOCK ? EAGAIN : errno, boost::system::system_category());
    else
      peer.resize(size);
    return socket;
  }

  void begin(core::FileDescriptor socket, const tcp::endpoint& peer) {
    ++connections_.counters.connections;
    const auto address = peer.address().to_string();
    auto welcome = Welcome::served;
    if (connections_.addresses.connections() >= connections_.setup.limits.connections)
      welcome = Welcome::too_many;
    else if (connections_.addresses.enter(address) == AddressLimits::Admission::too_many)
      welcome = Welcome::too_many_of_address;
    if (welcome != Welcome::served) {
      ++connections_.counters.refused;
      ++refused_;
      const auto now = std::chrono::steady_clock::now();
      const bool many = connections_.sessions.size() >= connections_.addresses.connections() + kMostBeingTold;
      if (many || now < tell_again_) return;
      tell_again_ = now + kTellEvery;
    }
    error_code error;
    tcp::socket accepted(connections_.io);
    accepted.assign(peer.protocol(), socket.get(), error);
    if (error && welcome == Welcome::served) connections_.addresses.leave(address);
    if (error) return;
    static_cast<void>(socket.release());
    accepted.set_option(tcp::no_delay(true), error);
    start_session(std::move(accepted), address, connections_, welcome);
  }

  std::shared_ptr<Connections> shared_;
  Connections& connections_;
  tcp::acceptor acceptor_;
  net::steady_timer pause_;
  int refused_ = 0;  // of those that were accepted at once
  std::chrono::steady_clock::time_point tell_again_{};
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
