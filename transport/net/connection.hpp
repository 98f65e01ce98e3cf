/// One connection of the control plane: a socket that does not block, and TLS on it where there is a context. Thread rule:
/// one thread at a time; it may change between calls. Owns the TLS state, and the socket until release().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "transport/security/tls_session.hpp"

namespace troupe::actors {

enum class WireState : std::uint8_t { ready, wants_read, wants_write, ended };
struct WireMove {
  WireState state = WireState::ended;
  std::size_t bytes = 0;  // moved, when ready
};

/// A socket that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] int release() noexcept;

 private:
  int fd_ = -1;
};

class Wire {
 public:
  /// Plain where `tls` is null; `tls` outlives it. Errc::internal: OpenSSL's reason.
  [[nodiscard]] static core::Result<Wire> create(Descriptor socket, SSL_CTX* tls, security::TlsSide side);

  /// The TLS handshake, a part at a time: call again when what it wants has happened. Plain: ready at once.
  [[nodiscard]] WireState shake_hands();
  [[nodiscard]] WireMove read(void* to, std::size_t size);
  [[nodiscard]] WireMove write(const void* from, std::size_t size);
  /// Bytes that are read from the socket already, so that no event will announce them.
  [[nodiscard]] std::size_t pending() const noexcept;

  /// Why it ended: peer_lost, "the other end closed the connection", or config, "certificate has expired".
  [[nodiscard]] const core::Error& error() const noexcept { return error_; }
  /// Whether the certificate that the other end showed names `host`. After the handshake; plain: yes.
  [[nodiscard]] bool names(const std::string& host) const;
  /// The SHA-256 of the certificate that the other end showed. After the handshake; plain: empty.
  [[nodiscard]] std::string certificate() const;
  [[nodiscard]] security::TlsSide side() const noexcept { return side_; }
  [[nodiscard]] int descriptor() const noexcept { return fd_; }
  /// Someone else closes the socket from now on.
  int release() noexcept { return socket_.release(); }

 private:
  WireState judge(int result);
  WireState hung_up(int error_number);

  Descriptor socket_;
  int fd_ = -1;
  security::TlsSide side_ = security::TlsSide::dialled;
  std::unique_ptr<security::TlsSession> tls_;
  core::Error error_{};
};

}  // namespace troupe::actors
