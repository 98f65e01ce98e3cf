/// The connection of one HTTP request: TCP, perhaps through a proxy's tunnel, perhaps with TLS. Included by http_get.cpp alone.
#pragma once

#include <utility>  // Asio 1.74's awaitable.hpp uses std::exchange and does not include it

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include "apps/fetch/http_get.hpp"

namespace troupe::fetch {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using SystemError = boost::system::error_code;

using Failed = tl::unexpected<HttpError>;
template <class T>
using HttpResult = tl::expected<T, HttpError>;

[[nodiscard]] Failed passing(core::Errc code, std::string message);
[[nodiscard]] Failed lasting(core::Errc code, std::string message);

class HttpConnection {
 public:
  HttpConnection(const HttpOptions& options, std::stop_token stop);

  /// Connects to `url`'s host, or to the proxy, which for https is asked for a tunnel.
  [[nodiscard]] HttpResult<void> connect(const Url& url, const std::optional<Url>& proxy);

  /// Starts an operation with a completion handler, and runs until it has ended. `limit`: of this wait.
  template <class Start>
  SystemError run(std::chrono::milliseconds limit, const Start& start) {
    SystemError result;
    bool ended = false, cancelled = false;
    beast::get_lowest_layer(tls_).expires_after(limit);
    start([&](SystemError error, auto&&...) {
      result = error;
      ended = true;
    });
    while (!ended) {
      context_.restart();
      context_.run_one_for(kHeardWithin);
      if (stop_.stop_requested() && !std::exchange(cancelled, true)) beast::get_lowest_layer(tls_).cancel();
    }
    return result;
  }

  [[nodiscard]] SystemError write(const http::request<http::empty_body>& request);
  [[nodiscard]] SystemError read_head(http::response_parser<http::buffer_body>& parser);
  [[nodiscard]] SystemError read_some(http::response_parser<http::buffer_body>& parser);

  /// What `error` means for a request to `url`, in the middle of `doing`.
  [[nodiscard]] Failed explain(const SystemError& error, const Url& url, std::string_view doing) const;

 private:
  static constexpr std::chrono::milliseconds kHeardWithin{50};
  [[nodiscard]] HttpResult<void> reach(const Url& host);
  [[nodiscard]] HttpResult<void> open_tunnel(const Url& url, const Url& proxy);
  [[nodiscard]] HttpResult<void> secure(const Url& url);
  template <class Operation>
  SystemError on_stream(std::chrono::milliseconds limit, const Operation& operation);

  const HttpOptions& options_;
  const std::stop_token stop_;
  asio::io_context context_{1};
  asio::ssl::context security_{asio::ssl::context::tls_client};
  beast::ssl_stream<beast::tcp_stream> tls_{context_, security_};
  beast::flat_buffer buffer_;
  bool secured_ = false;
};

}  // namespace troupe::fetch
