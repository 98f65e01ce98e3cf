#include "apps/fetch/http_connection.hpp"

#include <fmt/format.h>

#include "transport/net/address.hpp"

namespace troupe::fetch {

using core::Errc;

Failed passing(Errc code, std::string message) { return Failed(HttpError{{code, std::move(message)}, true}); }
Failed lasting(Errc code, std::string message) { return Failed(HttpError{{code, std::move(message)}, false}); }

Failed HttpConnection::explain(const SystemError& error, const Url& url, std::string_view doing) const {
  if (stream_.stopped()) return lasting(Errc::interrupted, "interrupted");
  const auto where = authority(url);
  if (error == beast::error::timeout)
    return passing(Errc::timeout, fmt::format("{}: no answer in time while {}", where, doing));
  if (HttpStream::is_end(error))
    return passing(Errc::peer_lost, fmt::format("{}: the connection ended while {}", where, doing));
  if (HttpStream::is_no_http(error))
    return lasting(Errc::data, fmt::format("{}: its answer is no HTTP: {}", where, error.message()));
  return passing(Errc::peer_lost, fmt::format("{}: {} while {}", where, error.message(), doing));
}

HttpResult<void> HttpConnection::reach(const Url& host) {
  const auto error = stream_.reach(host, options_.connect);
  if (!error) {
    if (error.error().code == Errc::interrupted) return lasting(Errc::interrupted, "interrupted");
    return Failed(HttpError{error.error(), error.error().code == Errc::timeout});
  }
  if (!*error) return {};
  if (*error == asio::error::connection_refused)
    return passing(Errc::peer_lost, fmt::format("{}: no server listens there", authority(host)));
  return explain(*error, host, "connecting");
}

HttpResult<void> HttpConnection::open_tunnel(const Url& url, const Url& proxy) {
  const auto target = fmt::format("{}:{}", transport::bracketed(url.host), url.port);
  HttpStream::Request request(http::verb::connect, target, 11);
  request.set(http::field::host, target);
  if (const auto error = write(request)) return explain(error, proxy, "asking the proxy");
  HttpStream::Parser parser;
  parser.skip(true);  // what follows belongs to the tunnel
  if (const auto error = read_head(parser)) return explain(error, proxy, "asking the proxy");
  const auto status = parser.get().result_int();
  if (status != 200)
    return lasting(Errc::config, fmt::format("the proxy {} refuses the way to {}: it answers {}", authority(proxy),
                                             authority(url), status));
  return {};
}

HttpResult<void> HttpConnection::secure(const Url& url) {
  const auto error = stream_.secure(url.host, options_.connect);
  if (!error) return {};
  if (stream_.stopped() || error == beast::error::timeout || HttpStream::is_end(error))
    return explain(error, url, "agreeing on TLS");
  return lasting(Errc::config,
                 fmt::format("{}: its certificate cannot be trusted, or it speaks no TLS: {}; SSL_CERT_FILE names a "
                             "file of authorities other than the system's",
                             authority(url), stream_.distrust(error)));
}

HttpResult<void> HttpConnection::connect(const Url& url, const std::optional<Url>& proxy) {
  if (auto reached = reach(proxy ? *proxy : url); !reached) return reached;
  if (!url.tls) return {};
  if (proxy)
    if (auto opened = open_tunnel(url, *proxy); !opened) return opened;
  return secure(url);
}

SystemError HttpConnection::write(const HttpStream::Request& request) {
  return stream_.write(request, options_.connect);
}

SystemError HttpConnection::read_head(HttpStream::Parser& parser) {
  return stream_.read_head(parser, options_.connect);
}

SystemError HttpConnection::read_some(HttpStream::Parser& parser) {
  return stream_.read_some(parser, options_.silence);
}

}  // namespace troupe::fetch
