/// One file over HTTP/1.1, with TLS for https: the system's certificates are trusted (or those of SSL_CERT_FILE and SSL_CERT_DIR). Follows
/// redirects, and the environment's proxies. Every wait has a deadline.
///
/// Blocks the calling thread; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>

#include <tl/expected.hpp>

#include "apps/fetch/url.hpp"

namespace troupe::fetch {

struct HttpOptions {
  std::chrono::milliseconds connect{30'000};  // for a connection with its TLS; for the head of an answer
  std::chrono::milliseconds silence{30'000};  // between two pieces of a file
  unsigned redirects = 5;
  Variable variable = [](const char* name) -> const char* { return std::getenv(name); };
};

/// The head of an answer that is no redirect.
struct Head {
  unsigned status = 0;
  std::optional<std::uint64_t> length{};  // bytes that follow
  std::optional<std::uint64_t> first{};   // of a 206: the file's first byte that follows,
  std::optional<std::uint64_t> total{};   // and the bytes of the whole file
};

/// What becomes of an answer. An Error from either ends the request and is its error.
struct Receiver {
  std::function<core::Result<void>(const Head&)> head;
  std::function<core::Result<void>(std::span<const char>)> body;  // pieces, in order
};

struct HttpError {
  core::Error error;
  bool passing = false;  // another try may succeed: a lost connection, a busy server
};

/// Asks for `url` from byte `first` on. The answer may begin elsewhere: see Head. Errors: Errc::peer_lost: the host refuses or drops the
/// connection, or answers with an error that passes (408, 429, 5xx); timeout; config: an unknown host, a certificate that cannot be trusted,
/// a broken proxy; data: too many redirects, one from https to http, an answer that is no HTTP, an error that stays (404); interrupted at
/// most 50 ms after a request of `stop`; those of `receiver`.
[[nodiscard]] tl::expected<void, HttpError> http_get(const Url& url, std::uint64_t first, const Receiver& receiver,
                                                     const HttpOptions& options, const std::stop_token& stop);

/// "bytes 100-199/200"; the total may be "*". Null for anything else.
struct ContentRange {
  std::uint64_t first = 0, last = 0;
  std::optional<std::uint64_t> total{};
};
[[nodiscard]] std::optional<ContentRange> parse_content_range(std::string_view text);

}  // namespace troupe::fetch
