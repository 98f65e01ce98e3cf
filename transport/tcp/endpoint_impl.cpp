#include "transport/tcp/endpoint_impl.hpp"

#include <utility>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

std::size_t index(Peer peer) noexcept { return static_cast<std::size_t>(peer); }

}  // namespace

core::Result<Connection> TcpEndpointImpl::connect(const Address& remote) {
  const std::lock_guard lock(mutex_);
  const std::string& mine = address_.text;
  if (closed_) return core::fail(core::Errc::usage, fmt::format("{} is closed and cannot connect", mine));
  if (remote.text == mine) return core::fail(core::Errc::usage, fmt::format("{} cannot connect to itself", mine));
  const auto parsed = parse_tcp_address(remote.text);
  if (!parsed) return tl::unexpected(parsed.error());
  for (const RemotePtr& r : remotes_)
    if (!r->session->lost() && r->session->remote() == remote.text)
      return core::fail(core::Errc::usage, fmt::format("{} is connected to {} already", mine, remote.text));
  if (parsed->tls != encrypted())
    return core::fail(core::Errc::config,
                      fmt::format("{} speaks {} and {} {}: give both their TLS files, or neither", mine,
                                  encrypted() ? "TLS" : "plain TCP", remote.text, parsed->tls ? "TLS" : "plain TCP"));
  if (!encrypted() && is_numeric(parsed->at.host) && !is_loopback(parsed->at.host))
    return core::fail(core::Errc::config, fmt::format("{} is not on this host, and off loopback tcp needs TLS: give an "
                                                      "authority, a certificate and a key (`troupe certs`)",
                                                      remote.text));
  const Peer peer{static_cast<std::uint32_t>(remotes_.size())};
  const auto added = std::make_shared<Remote>();
  added->session = std::make_shared<TcpSession>(TcpSession::Setup{.self = mine,
                                                                  .remote = remote.text,
                                                                  .peer = peer,
                                                                  .credit = options_.credit,
                                                                  .window = window_of(options_.credit),
                                                                  .completions = options_.completions});
  remotes_.push_back(added);
  const Connection connection{peer, added->session->establish()};
  asio::post(io_, [this, peer, remote = *parsed] { handshake_->connect(peer, remote); });
  return connection;
}

void TcpEndpointImpl::drop(const RemotePtr& remote, std::string why) {
  if (remote->session->lost()) return;
  remote->session->lose(core::Errc::peer_lost, why);
  asio::post(io_, [this, remote, why = std::move(why)] {
    const std::string farewell = "it disconnected: " + why;
    if (const auto connection = std::exchange(remote->connection, nullptr)) connection->stop(farewell);
    remote->broken.clear();
    handshake_->forget(remote->session->peer(), remote->session->remote(), farewell);
    const std::lock_guard lock(mutex_);
    remote->session->end(Outcome::failed);
  });
}

void TcpEndpointImpl::disconnect(Peer peer, std::string_view why) {
  const std::lock_guard lock(mutex_);
  drop(remotes_.at(index(peer)), std::string(why));
}

core::Result<std::optional<OperationId>> TcpEndpointImpl::send(Peer peer, Tag tag, ConstMemoryView memory) {
  const std::lock_guard lock(mutex_);
  const RemotePtr& remote = remotes_.at(index(peer));
  if (closed_) return core::fail(core::Errc::usage, fmt::format("{} is closed and cannot transfer", address_.text));
  auto started = remote->session->send(tag, memory);
  kick(remote);
  return started;
}

core::Result<OperationId> TcpEndpointImpl::receive(Peer peer, Tag tag, MemoryView memory) {
  const std::lock_guard lock(mutex_);
  const RemotePtr& remote = remotes_.at(index(peer));
  if (closed_) return core::fail(core::Errc::usage, fmt::format("{} is closed and cannot transfer", address_.text));
  auto started = remote->session->receive(tag, memory);
  kick(remote);
  return started;
}

void TcpEndpointImpl::kick(const RemotePtr& remote) {
  if (!remote->session->has_output() || std::exchange(remote->kicked, true)) return;
  asio::post(io_, [this, remote] {
    {
      const std::lock_guard lock(mutex_);
      remote->kicked = false;
    }
    if (const auto connection = remote->connection) connection->kick();
  });
}

void TcpEndpointImpl::cancel(OperationId operation) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  for (const RemotePtr& remote : remotes_) {
    const auto cancelled = remote->session->cancel(operation);
    if (cancelled == TcpSession::Cancelled::unknown) continue;
    if (cancelled == TcpSession::Cancelled::connecting) drop(remote, "connecting was cancelled");
    kick(remote);
    return;
  }
}

Traffic TcpEndpointImpl::traffic(Peer peer) const {
  const std::lock_guard lock(mutex_);
  return remotes_.at(index(peer))->session->traffic();
}

std::uint64_t TcpEndpointImpl::progress(Peer peer) const {
  const std::lock_guard lock(mutex_);
  return remotes_.at(index(peer))->session->progress();
}

void TcpEndpointImpl::close() noexcept {
  const std::lock_guard closing(closing_);
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
  }
  asio::post(io_, [this] { shut(); });
  thread_.join();
  const std::lock_guard lock(mutex_);
  for (const RemotePtr& remote : remotes_) {
    remote->session->lose(core::Errc::peer_lost, "this endpoint was closed");
    remote->session->end(Outcome::cancelled);
  }
}

}  // namespace troupe::transport
