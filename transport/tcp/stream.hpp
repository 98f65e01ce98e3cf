/// Bytes over one TCP connection, plain or through TLS, without blocking: every call moves what can be moved now. Memory
/// is touched during a call and never after it, so lent memory can go back between two calls. (Asio's own asynchronous
/// reads and writes, and its ssl::stream, keep pointers while they wait: here Asio only waits for readiness.)
///
/// Bytes that write() has taken may wait inside TLS, encrypted: flush() until it has nothing. Thread rule: one thread.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/error.hpp"
#include "transport/security/tls_session.hpp"
#include "transport/tcp/asio.hpp"

namespace troupe::transport {

class TcpStream {
 public:
  enum class State : std::uint8_t {
    moved,        ///< `bytes` of them, more than none
    wants_read,   ///< nothing: wait until the socket is readable
    wants_write,  ///< nothing: wait until it is writable
    ended,        ///< the peer has closed, or reset, the connection
    failed,       ///< TLS: see why()
  };
  struct Step {
    State state{};
    std::size_t bytes = 0;
  };

  explicit TcpStream(tcp::socket socket);
  /// Speaks TLS from now on. `host`: who is dialled, and must be named by the certificate; empty: accepted.
  [[nodiscard]] core::Result<void> secure(SSL_CTX* context, const std::string& host);
  TcpStream(TcpStream&&) noexcept;
  TcpStream& operator=(TcpStream&&) noexcept;
  ~TcpStream();

  /// moved (0 bytes): done; at once on a plain connection.
  [[nodiscard]] Step shake_hands();
  /// Fills the parts in order, each before the next.
  [[nodiscard]] Step read(std::span<const iovec> parts);
  /// moved: the peer has no byte after those; that the connection ended meanwhile is for the next call to say.
  [[nodiscard]] Step write(std::span<const iovec> parts);
  [[nodiscard]] Step flush();
  [[nodiscard]] bool holds_bytes() const noexcept;

  /// For waiting and closing.
  [[nodiscard]] tcp::socket& socket() noexcept { return socket_; }
  /// Why the last call said ended or failed.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  /// Null without TLS, and before hands are shaken.
  [[nodiscard]] security::Certificate peer_certificate() const;
  void close() noexcept;

 private:
  [[nodiscard]] Step receive(std::span<const iovec> parts);
  [[nodiscard]] Step transmit(std::span<const iovec> parts);
  [[nodiscard]] Step ended(int error_number);
  [[nodiscard]] Step explain(int result);

  tcp::socket socket_;
  std::unique_ptr<security::TlsSession> tls_;
  std::optional<int> send_error_;  // the socket takes nothing any more
  std::string why_;
};

}  // namespace troupe::transport
