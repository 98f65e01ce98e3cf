/// One connection to a service, with Boost.Beast. Included by service_client.cpp alone. One thread.
#pragma once

#include <utility>  // Asio 1.74's awaitable.hpp uses std::exchange and does not include it

#include <boost/asio/io_context.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include "apps/client/service_client.hpp"

namespace troupe::apps {

class ServiceClient::Connection {
 public:
  using Failure = boost::system::error_code;
  using Parser = boost::beast::http::response_parser<boost::beast::http::buffer_body>;
  using OnPiece = std::function<void(std::string_view)>;

  Connection(const ServiceAddress& address, const ClientLimits& limits, std::stop_token stop);

  /// Resolves, connects and agrees on TLS.
  [[nodiscard]] core::Result<void> open();
  /// Sends the request and reads the head of its answer.
  [[nodiscard]] Failure ask(const std::string& target, std::string_view accept, std::string_view last_id,
                            Parser& parser);
  /// Reads the answer's body to its end. `silence`: the longest between two pieces.
  [[nodiscard]] Failure read(Parser& parser, std::chrono::milliseconds silence, const OnPiece& on_piece);
  /// What `error` means in the middle of `doing`.
  [[nodiscard]] core::Error explain(const Failure& error, std::string_view doing) const;
  [[nodiscard]] static bool is_end(const Failure& error);

 private:
  static constexpr std::chrono::milliseconds kHeardWithin{50};
  /// Starts an operation, and runs until it has ended.
  template <class Start>
  Failure run(std::chrono::milliseconds limit, const Start& start);
  template <class Operation>
  Failure on_stream(std::chrono::milliseconds limit, const Operation& operation);
  [[nodiscard]] core::Result<void> reach();
  [[nodiscard]] core::Result<void> secure();

  const ServiceAddress& address_;
  const ClientLimits& limits_;
  std::stop_token stop_;
  boost::asio::io_context context_{1};
  boost::asio::ssl::context security_{boost::asio::ssl::context::tls_client};
  boost::beast::ssl_stream<boost::beast::tcp_stream> tls_{context_, security_};
  boost::beast::flat_buffer buffer_;
};

}  // namespace troupe::apps
