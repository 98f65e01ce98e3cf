/// The state of a tcp endpoint, its listening socket and its I/O thread. Internal to tcp.
///
/// Callers' threads and the I/O thread share the sessions, behind one mutex. Sockets belong to the I/O thread, which sleeps in
/// epoll between two events and wakes once per heartbeat. The I/O thread uses lent memory between two accesses to a session. So
/// only the I/O thread ends a session, or close() after that thread has ended.
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
#include "transport/tcp/connection.hpp"
#include "transport/tcp/handshake.hpp"
#include "transport/tcp/protocol/session.hpp"

namespace troupe::transport {

class TcpEndpointImpl {
 public:
  /// Listens. Errc::config: invalid TLS files or listening address.
  [[nodiscard]] static core::Result<std::unique_ptr<TcpEndpointImpl>> create(const EndpointOptions& options);
  ~TcpEndpointImpl();
  TcpEndpointImpl(const TcpEndpointImpl&) = delete;
  TcpEndpointImpl& operator=(const TcpEndpointImpl&) = delete;

  [[nodiscard]] const Address& address() const noexcept { return address_; }
  [[nodiscard]] bool encrypted() const noexcept { return tls_ != nullptr; }
  [[nodiscard]] CompletionQueue& completions() const noexcept { return *options_.completions; }

  // As in endpoint.hpp.
  [[nodiscard]] core::Result<Connection> connect(const Address& remote);
  void disconnect(Peer peer, std::string_view why);
  [[nodiscard]] core::Result<std::optional<OperationId>> send(Peer peer, Tag tag, ConstMemoryView memory);
  [[nodiscard]] core::Result<OperationId> receive(Peer peer, Tag tag, MemoryView memory);
  void cancel(OperationId operation);
  [[nodiscard]] Traffic traffic(Peer peer) const;
  [[nodiscard]] std::uint64_t progress(Peer peer) const;
  void close() noexcept;

 private:
  /// A session, and its connection state, which belongs to the I/O thread.
  struct Remote {
    std::shared_ptr<TcpSession> session;
    std::shared_ptr<TcpConnection> connection;  // null before the first connection, and between two
    std::string broken{};                       // reason why the last connection broke; empty: it did not
    unsigned silent = 0;                        // beats without a whole frame from the peer, over several connections
    bool kicked = false;                        // a kick of the connection is posted
  };
  using RemotePtr = std::shared_ptr<Remote>;

  TcpEndpointImpl(const EndpointOptions& options, std::shared_ptr<SSL_CTX> tls, TcpAddress self);
  [[nodiscard]] core::Result<void> listen(const HostPort& at);

  // With mutex_ held.
  void kick(const RemotePtr& remote);
  void drop(const RemotePtr& remote, std::string why);

  // Called by the I/O thread; start() by create().
  void start();
  void accept();
  void beat();
  void beat_one(const RemotePtr& remote);
  [[nodiscard]] RemotePtr at(Peer peer) const;
  void connected(const RemotePtr& remote, TcpStream stream, const Hello& of_peer);
  void broke(const RemotePtr& remote, const std::string& why);
  void ended(const RemotePtr& remote, TcpConnection::Why how, const core::Error& why);
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
  std::unique_ptr<TcpHandshake> handshake_;

  mutable std::mutex mutex_;
  std::vector<RemotePtr> remotes_;  // by Peer; guarded by mutex_; connections belong to the I/O thread
  bool closed_ = false;
  std::mutex closing_;  // held by the first close() until it returns
  std::thread thread_;
};

}  // namespace troupe::transport
