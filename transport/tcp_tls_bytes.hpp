/// OpenSSL's way to a socket: reads from it directly, and collects what it writes so that several records leave in one
/// system call. (OpenSSL's own socket BIO would raise SIGPIPE.) Thread rule: one thread, that of the stream.
#pragma once

#include <openssl/bio.h>

#include <cstddef>
#include <vector>

namespace troupe::transport {

inline constexpr std::size_t kTlsReadBytes = std::size_t{64} << 10;
inline constexpr std::size_t kTlsWriteBytes = std::size_t{128} << 10;

struct TlsBytes {
  int descriptor = -1;
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

/// Null when memory ran out. `bytes` must outlive it.
[[nodiscard]] BIO* make_bio(TlsBytes& bytes);

}  // namespace troupe::transport
