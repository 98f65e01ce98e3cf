/// TLS over a non-blocking socket, for the data plane and the control plane. It replaces OpenSSL's socket BIO, which would raise SIGPIPE.
/// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "transport/security/openssl.hpp"

namespace troupe::security {

inline constexpr std::size_t kTlsReadBytes = std::size_t{64} << 10;
inline constexpr std::size_t kTlsWriteBytes = std::size_t{128} << 10;

enum class TlsSide : std::uint8_t { dialled, accepted };
/// Where OpenSSL's output goes.
enum class TlsWrites : std::uint8_t {
  directly,   ///< to the socket
  collected,  ///< into TlsBytes::out, which the owner sends: several records leave in one system call
};

/// OpenSSL's side of the socket.
struct TlsBytes {
  int descriptor = -1;
  TlsWrites writes = TlsWrites::directly;
  std::vector<std::byte> out{};  // encrypted, not sent yet
  std::size_t sent = 0;          // bytes of `out` already sent
  bool ended = false;            // the socket reported its end, or this error:
  int error_number = 0;

  [[nodiscard]] bool empty() const noexcept { return sent == out.size(); }
  [[nodiscard]] bool full() const noexcept { return size() >= kTlsWriteBytes; }
  [[nodiscard]] std::size_t size() const noexcept { return out.size() - sent; }
  [[nodiscard]] std::byte* front() noexcept { return out.data() + sent; }
  void drop(std::size_t bytes);
};

/// Must not move: OpenSSL keeps pointers to it.
struct TlsSession {
  TlsBytes bytes;  // first member: destroyed after `ssl`, which uses it
  std::unique_ptr<SSL, Freed<SSL_free>> ssl;
};

/// `descriptor` and `context` outlive it. Writes may be partial, from memory that may move. Errc::internal: OpenSSL's reason.
[[nodiscard]] core::Result<std::unique_ptr<TlsSession>> make_tls_session(SSL_CTX* context, int descriptor, TlsSide side,
                                                                         TlsWrites writes);

}  // namespace troupe::security
