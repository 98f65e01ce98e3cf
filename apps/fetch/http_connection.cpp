#include "apps/fetch/http_connection.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "transport/net/connector.hpp"

namespace troupe::fetch {
namespace {

using core::Errc;
using Clock = std::chrono::steady_clock;

bool is_end(const SystemError& error) {
  return error == http::error::end_of_stream || error == http::error::partial_message || error == asio::error::eof ||
         error == asio::ssl::error::stream_truncated || error == asio::error::connection_reset ||
         error == asio::error::broken_pipe || error == asio::error::connection_aborted;
}

}  // namespace

Failed passing(Errc code, std::string message) { return Failed(HttpError{{code, std::move(message)}, true}); }
Failed lasting(Errc code, std::string message) { return Failed(HttpError{{code, std::move(message)}, false}); }

HttpConnection::HttpConnection(const HttpOptions& options, std::stop_token stop)
    : options_(options), stop_(std::move(stop)) {
  SystemError ignored;  // without certificates the handshake fails, and says so
  security_.set_default_verify_paths(ignored);
  security_.set_options(
      asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, ignored);
}

Failed HttpConnection::explain(const SystemError& error, const Url& url, std::string_view doing) const {
  if (stop_.stop_requested()) return lasting(Errc::interrupted, "interrupted");
  const auto where = authority(url);
  if (error == beast::error::timeout)
    return passing(Errc::timeout, fmt::format("{}: no answer in time while {}", where, doing));
  if (is_end(error)) return passing(Errc::peer_lost, fmt::format("{}: the connection ended while {}", where, doing));
  if (error.category() == http::make_error_code(http::error::bad_method).category())
    return lasting(Errc::data, fmt::format("{}: its answer is no HTTP: {}", where, error.message()));
  return passing(Errc::peer_lost, fmt::format("{}: {} while {}", where, error.message(), doing));
}

HttpResult<void> HttpConnection::reach(const Url& host) {
  const auto deadline = Clock::now() + options_.connect;
  const auto found = transport::find_addresses({host.host, host.port}, true, deadline, stop_);
  if (!found) {
    if (found.error().code == Errc::interrupted) return lasting(Errc::interrupted, "interrupted");
    return Failed(HttpError{found.error(), found.error().code == Errc::timeout});
  }
  SystemError error = asio::error::host_unreachable;
  for (std::size_t i = 0; i < found->size() && error; ++i) {
    const auto& address = (*found)[i];
    asio::ip::tcp::endpoint endpoint;
    endpoint.resize(address.size);
    std::memcpy(endpoint.data(), address.get(), address.size);
    // A silent address must not take the time of the next ones.
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    const auto share = std::max(left / static_cast<int>(found->size() - i), std::chrono::milliseconds(1));
    auto& stream = beast::get_lowest_layer(tls_);
    stream.close();
    error = run(share, [&](auto handler) { stream.async_connect(endpoint, std::move(handler)); });
    if (stop_.stop_requested()) break;
  }
  if (!error) return {};
  if (error == asio::error::connection_refused)
    return passing(Errc::peer_lost, fmt::format("{}: no server listens there", authority(host)));
  return explain(error, host, "connecting");
}

HttpResult<void> HttpConnection::open_tunnel(const Url& url, const Url& proxy) {
  const auto target = fmt::format("{}:{}", transport::bracketed(url.host), url.port);
  http::request<http::empty_body> request(http::verb::connect, target, 11);
  request.set(http::field::host, target);
  if (const auto error = write(request)) return explain(error, proxy, "asking the proxy");
  http::response_parser<http::buffer_body> parser;
  parser.skip(true);  // what follows belongs to the tunnel
  if (const auto error = read_head(parser)) return explain(error, proxy, "asking the proxy");
  const auto status = parser.get().result_int();
  if (status != 200)
    return lasting(Errc::config, fmt::format("the proxy {} refuses the way to {}: it answers {}", authority(proxy),
                                             authority(url), status));
  return {};
}

HttpResult<void> HttpConnection::secure(const Url& url) {
  SystemError error;
  tls_.set_verify_mode(asio::ssl::verify_peer, error);
  tls_.set_verify_callback(asio::ssl::host_name_verification(url.host), error);
  if (!transport::is_numeric(url.host)) SSL_set_tlsext_host_name(tls_.native_handle(), url.host.c_str());
  error = run(options_.connect,
              [&](auto handler) { tls_.async_handshake(asio::ssl::stream_base::client, std::move(handler)); });
  if (!error) {
    secured_ = true;
    return {};
  }
  if (stop_.stop_requested() || error == beast::error::timeout || is_end(error))
    return explain(error, url, "agreeing on TLS");
  const long verified = SSL_get_verify_result(tls_.native_handle());
  return lasting(
      Errc::config,
      fmt::format("{}: its certificate cannot be trusted, or it speaks no TLS: {}; SSL_CERT_FILE names a "
                  "file of authorities other than the system's",
                  authority(url), verified == X509_V_OK ? error.message() : X509_verify_cert_error_string(verified)));
}

HttpResult<void> HttpConnection::connect(const Url& url, const std::optional<Url>& proxy) {
  if (auto reached = reach(proxy ? *proxy : url); !reached) return reached;
  if (!url.tls) return {};
  if (proxy)
    if (auto opened = open_tunnel(url, *proxy); !opened) return opened;
  return secure(url);
}

template <class Operation>
SystemError HttpConnection::on_stream(std::chrono::milliseconds limit, const Operation& operation) {
  if (secured_) return run(limit, [&](auto handler) { operation(tls_, std::move(handler)); });
  return run(limit, [&](auto handler) { operation(tls_.next_layer(), std::move(handler)); });
}

SystemError HttpConnection::write(const http::request<http::empty_body>& request) {
  return on_stream(options_.connect,
                   [&](auto& stream, auto handler) { http::async_write(stream, request, std::move(handler)); });
}

SystemError HttpConnection::read_head(http::response_parser<http::buffer_body>& parser) {
  return on_stream(options_.connect, [&](auto& stream, auto handler) {
    http::async_read_header(stream, buffer_, parser, std::move(handler));
  });
}

SystemError HttpConnection::read_some(http::response_parser<http::buffer_body>& parser) {
  return on_stream(options_.silence, [&](auto& stream, auto handler) {
    http::async_read_some(stream, buffer_, parser, std::move(handler));
  });
}

}  // namespace troupe::fetch
