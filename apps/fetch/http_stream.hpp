/// A connection for HTTP over TCP, perhaps with TLS 1.2 or later, with Boost.Beast. Each call blocks until its operation has ended, and has a
/// limit; it ends at most 50 ms after a request to stop, with any error. Included by the sources of apps/fetch and apps/client that make
/// requests. One thread.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <utility>  // Asio 1.74's awaitable.hpp uses std::exchange and does not include it

#include <boost/asio/io_context.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include "apps/fetch/url.hpp"
#include "core/error.hpp"

namespace troupe::fetch {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using SystemError = boost::system::error_code;

class HttpStream {
 public:
  using Request = http::request<http::empty_body>;
  using Parser = http::response_parser<http::buffer_body>;

  explicit HttpStream(std::stop_token stop) : stop_(std::move(stop)) {}

  /// Connects to the first of the host's addresses that takes the connection. Its own error: they cannot be found, or interrupted.
  [[nodiscard]] core::Result<SystemError> reach(const Url& host, std::chrono::milliseconds limit);
  /// Agrees on TLS with `host`, whose name the certificate must have.
  [[nodiscard]] SystemError secure(const std::string& host, std::chrono::milliseconds limit);
  /// Before secure(): trusts the authorities of this file in place of the system's.
  [[nodiscard]] SystemError trust(const std::string& file);
  /// Why secure() failed with `error`, in words.
  [[nodiscard]] std::string distrust(const SystemError& error) const;

  [[nodiscard]] SystemError write(const Request& request, std::chrono::milliseconds limit);
  [[nodiscard]] SystemError read_head(Parser& parser, std::chrono::milliseconds limit);
  /// As much of the body as is there, at least a byte.
  [[nodiscard]] SystemError read_some(Parser& parser, std::chrono::milliseconds limit);

  /// Whether the other side has ended the connection.
  [[nodiscard]] static bool is_end(const SystemError& error);
  [[nodiscard]] static bool is_no_http(const SystemError& error);
  [[nodiscard]] bool stopped() const { return stop_.stop_requested(); }

 private:
  template <class Start>
  SystemError run(std::chrono::milliseconds limit, const Start& start);
  template <class Operation>
  SystemError on_stream(std::chrono::milliseconds limit, const Operation& operation);

  const std::stop_token stop_;
  asio::io_context context_{1};
  asio::ssl::context security_{asio::ssl::context::tls_client};
  beast::ssl_stream<beast::tcp_stream> tls_{context_, security_};
  beast::flat_buffer buffer_;
  bool has_authorities_ = false, secured_ = false;
};

}  // namespace troupe::fetch
