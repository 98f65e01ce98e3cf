/// One connection of the control plane: a non-blocking socket, with TLS where there is a context. Thread rule: one thread at a time; the
/// thread may change between calls. Owns the TLS state, and the socket until release().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "core/file_descriptor.hpp"
#include "transport/security/tls_session.hpp"

namespace troupe::transport {

enum class ConnectionState : std::uint8_t { ready, wants_read, wants_write, ended };
struct ConnectionMove {
  ConnectionState state = ConnectionState::ended;
  std::size_t bytes = 0;  // bytes moved, when ready
};

class TlsConnection {
 public:
  /// Plain TCP where `tls` is null; `tls` outlives this object. Errc::internal with OpenSSL's reason.
  [[nodiscard]] static core::Result<TlsConnection> create(core::FileDescriptor socket, SSL_CTX* tls,
                                                          security::TlsSide side);

  /// Advances the TLS handshake: call again after the wanted event. Plain TCP: ready at once.
  [[nodiscard]] ConnectionState shake_hands();
  [[nodiscard]] ConnectionMove read(void* to, std::size_t size);
  [[nodiscard]] ConnectionMove write(const void* from, std::size_t size);
  /// Bytes already read from the socket: no socket event will announce them.
  [[nodiscard]] std::size_t pending() const noexcept;

  /// Why the connection ended: peer_lost, "the other end closed the connection", or config, "certificate has expired".
  [[nodiscard]] const core::Error& error() const noexcept { return error_; }
  /// Whether the peer's certificate names `host`. REQUIRES a complete handshake; plain TCP: true.
  [[nodiscard]] bool names(const std::string& host) const;
  /// The SHA-256 of the peer's certificate. REQUIRES a complete handshake; plain TCP: empty.
  [[nodiscard]] std::string certificate() const;
  [[nodiscard]] security::TlsSide side() const noexcept { return side_; }
  [[nodiscard]] int descriptor() const noexcept { return fd_; }
  /// The caller closes the socket from now on.
  int release() noexcept { return socket_.release(); }

 private:
  ConnectionState judge(int result);
  ConnectionState hung_up(int error_number);

  core::FileDescriptor socket_;
  int fd_ = -1;
  security::TlsSide side_ = security::TlsSide::dialled;
  std::unique_ptr<security::TlsSession> tls_;
  core::Error error_{};
};

}  // namespace troupe::transport
