/// Bytes over one TCP connection, plain or through TLS, without blocking: every call moves the bytes that can move now. Memory is
/// accessed only during a call, so lent memory may be returned between two calls. (Asio's own asynchronous reads and writes, and
/// its ssl::stream, keep pointers while they wait; here Asio only waits for readiness.)
///
/// Bytes that write() has accepted may wait inside TLS, encrypted: call flush() until none are left. Thread rule: one thread.
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
  static constexpr std::size_t kLowWaterBytes = std::size_t{64} << 10;

  enum class State : std::uint8_t {
    moved,        ///< moved `bytes`, more than none
    wants_read,   ///< moved none: wait until the socket is readable
    wants_write,  ///< moved none: wait until it is writable
    ended,        ///< the peer has closed or reset the connection
    failed,       ///< TLS: see why()
  };
  struct Step {
    State state{};
    std::size_t bytes = 0;
  };

  explicit TcpStream(tcp::socket socket);
  /// Uses TLS from now on. `host`: the host that was called; the certificate must name it. Empty: an accepted connection.
  [[nodiscard]] core::Result<void> secure(SSL_CTX* context, const std::string& host);
  TcpStream(TcpStream&&) noexcept;
  TcpStream& operator=(TcpStream&&) noexcept;
  ~TcpStream();

  /// moved (0 bytes): done. A plain connection is done at once.
  [[nodiscard]] Step shake_hands();
  /// Fills the parts in order.
  [[nodiscard]] Step read(std::span<const iovec> parts);
  /// moved: at most those bytes reach the peer. If the connection ended meanwhile, the next call reports it.
  [[nodiscard]] Step write(std::span<const iovec> parts);
  [[nodiscard]] Step flush();
  [[nodiscard]] bool holds_bytes() const noexcept;

  /// Before a wait for readability: so many bytes are sure to come, of which the caller needs none before the others. The socket then becomes
  /// readable when most of them are there (at most kLowWaterBytes), and not with each packet: on a link of 100 Mbit/s a packet may come every
  /// 120 us, and each wake-up costs about 8 us of a processor. 0: readable with the first byte.
  void expect(std::size_t bytes) noexcept;
  [[nodiscard]] bool holds_back() const noexcept { return low_water_ > 1; }  ///< arrived bytes may wait in the socket

  /// For waiting and closing.
  [[nodiscard]] tcp::socket& socket() noexcept { return socket_; }
  /// The reason why the last call returned ended or failed.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  /// Null without TLS and before the TLS handshake.
  [[nodiscard]] security::Certificate peer_certificate() const;
  void close() noexcept;

 private:
  [[nodiscard]] Step receive(std::span<const iovec> parts);
  [[nodiscard]] Step transmit(std::span<const iovec> parts);
  [[nodiscard]] Step ended(int error_number);
  [[nodiscard]] Step explain(int result);

  tcp::socket socket_;
  std::unique_ptr<security::TlsSession> tls_;
  std::optional<int> send_error_;  // set: the socket accepts no more bytes
  std::string why_;
  int low_water_ = 1;  // SO_RCVLOWAT
};

}  // namespace troupe::transport
