/// TLS over a socket that does not block, as both the data plane and the control plane speak it. OpenSSL's own socket BIO
/// would raise SIGPIPE. Thread rule: one thread at a time.
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
/// Where the bytes go that OpenSSL writes.
enum class TlsWrites : std::uint8_t {
  directly,   ///< to the socket
  collected,  ///< into TlsBytes::out, so that several records leave in one system call: the owner's
};

/// OpenSSL's end of the socket.
struct TlsBytes {
  int descriptor = -1;
  TlsWrites writes = TlsWrites::directly;
  std::vector<std::byte> out{};  // encrypted, not sent
  std::size_t sent = 0;          // of out
  bool ended = false;            // the socket gave its end, or an error:
  int error_number = 0;

  [[nodiscard]] bool empty() const noexcept { return sent == out.size(); }
  [[nodiscard]] bool full() const noexcept { return size() >= kTlsWriteBytes; }
  [[nodiscard]] std::size_t size() const noexcept { return out.size() - sent; }
  [[nodiscard]] std::byte* front() noexcept { return out.data() + sent; }
  void drop(std::size_t bytes);
};

/// OpenSSL keeps pointers to it: it stays where it is.
struct TlsSession {
  TlsBytes bytes;  // first: OpenSSL's end of it goes before it
  std::unique_ptr<SSL, Freed<SSL_free>> ssl;
};

/// Over `descriptor`, which outlives it, as does `context`. Partial writes, from memory that may move. Errc::internal: OpenSSL's reason.
[[nodiscard]] core::Result<std::unique_ptr<TlsSession>> make_tls_session(SSL_CTX* context, int descriptor, TlsSide side,
                                                                         TlsWrites writes);

}  // namespace troupe::security
