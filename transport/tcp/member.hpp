/// Inside of tcp: one endpoint's state, its listening socket and its I/O thread. Only endpoint.cpp includes this.
///
/// Callers' threads and the I/O thread meet in the sessions, behind one mutex; sockets belong to the I/O thread, which
/// sleeps in epoll between two events and wakes once per heartbeat. Lent memory is touched by the I/O thread between
/// two of its looks at a session: so it is the I/O thread that ends a session, or close() when that thread is gone.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "transport/endpoint.hpp"
#include "transport/endpoint_options.hpp"
#include "transport/net/address.hpp"
#include "transport/tcp/asio.hpp"
#include "transport/tcp/handshake.hpp"
#include "transport/tcp/connection.hpp"
#include "transport/tcp/protocol/session.hpp"

namespace troupe::transport {

class TcpMember {
 public:
  /// Listens. Errc::config: TLS or the address to listen on.
  [[nodiscard]] static core::Result<std::unique_ptr<TcpMember>> create(const EndpointOptions& options);
  ~TcpMember();
  TcpMember(const TcpMember&) = delete;
  TcpMember& operator=(const TcpMember&) = delete;

  [[nodiscard]] const Address& address() const noexcept { return address_; }
  [[nodiscard]] bool encrypted() const noexcept { return tls_ != nullptr; }
  [[nodiscard]] CompletionQueue& completions() const noexcept { return *options_.completions; }

  // As endpoint.hpp has them.
  [[nodiscard]] core::Result<Connection> connect(const Address& remote);
  void disconnect(Peer peer, std::string_view why);
  [[nodiscard]] core::Result<std::optional<OperationId>> send(Peer peer, Tag tag, ConstMemoryView memory);
  [[nodiscard]] core::Result<OperationId> receive(Peer peer, Tag tag, MemoryView memory);
  void cancel(OperationId operation);
  [[nodiscard]] Traffic traffic(Peer peer) const;
  [[nodiscard]] std::uint64_t progress(Peer peer) const;
  void close() noexcept;

 private:
  /// A session and, of the I/O thread, what carries it.
  struct Remote {
    std::shared_ptr<TcpSession> session;
    std::shared_ptr<TcpPump> pump;  // null before the two meet, and between two connections
    std::string broken{};           // why the last connection broke; empty: it did not
    unsigned silent = 0;            // beats since the peer has said something whole, between two connections
    bool kicked = false;            // the pump has been told that there are frames
  };
  using RemotePtr = std::shared_ptr<Remote>;

  TcpMember(const EndpointOptions& options, std::shared_ptr<SSL_CTX> tls, TcpAddress self);
  [[nodiscard]] core::Result<void> listen(const HostPort& at);

  // With the mutex.
  void kick(const RemotePtr& remote);
  void drop(const RemotePtr& remote, std::string why);

  // The I/O thread's.
  void start();
  void accept();
  void beat();
  void beat_one(const RemotePtr& remote);
  [[nodiscard]] RemotePtr at(Peer peer) const;
  void met(const RemotePtr& remote, TcpStream stream, const Hello& of_peer);
  void broke(const RemotePtr& remote, const std::string& why);
  void ended(const RemotePtr& remote, TcpPump::Why how, const core::Error& why);
  void lost(const RemotePtr& remote, const core::Error& why);
  void shut();

  const EndpointOptions options_;
  const std::shared_ptr<SSL_CTX> tls_;
  TcpAddress self_;
  Address address_;

  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  asio::steady_timer accept_again_{io_};
  asio::steady_timer heartbeat_{io_};
  std::unique_ptr<TcpMeeting> meeting_;

  mutable std::mutex mutex_;
  std::vector<RemotePtr> remotes_;  // by Peer; guarded by mutex_, pumps by the I/O thread
  bool closed_ = false;
  std::mutex closing_;  // held by the first close() until it is through
  std::thread thread_;
};

}  // namespace troupe::transport
