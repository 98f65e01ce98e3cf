/// The connection of one HTTP request: TCP, perhaps through a proxy's tunnel, perhaps with TLS. Included by http_get.cpp alone.
#pragma once

#include "apps/fetch/http_get.hpp"
#include "apps/fetch/http_stream.hpp"

namespace troupe::fetch {

using Failed = tl::unexpected<HttpError>;
template <class T>
using HttpResult = tl::expected<T, HttpError>;

[[nodiscard]] Failed passing(core::Errc code, std::string message);
[[nodiscard]] Failed lasting(core::Errc code, std::string message);

class HttpConnection {
 public:
  HttpConnection(const HttpOptions& options, std::stop_token stop) : options_(options), stream_(std::move(stop)) {}

  /// Connects to `url`'s host, or to the proxy, which for https is asked for a tunnel.
  [[nodiscard]] HttpResult<void> connect(const Url& url, const std::optional<Url>& proxy);

  [[nodiscard]] SystemError write(const HttpStream::Request& request);
  [[nodiscard]] SystemError read_head(HttpStream::Parser& parser);
  [[nodiscard]] SystemError read_some(HttpStream::Parser& parser);

  /// What `error` means for a request to `url`, in the middle of `doing`.
  [[nodiscard]] Failed explain(const SystemError& error, const Url& url, std::string_view doing) const;

 private:
  [[nodiscard]] HttpResult<void> reach(const Url& host);
  [[nodiscard]] HttpResult<void> open_tunnel(const Url& url, const Url& proxy);
  [[nodiscard]] HttpResult<void> secure(const Url& url);

  const HttpOptions& options_;
  HttpStream stream_;
};

}  // namespace troupe::fetch
