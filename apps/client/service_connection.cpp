#include "apps/client/service_connection.hpp"

#include <algorithm>
#include <cstring>

#include <boost/asio/ssl/host_name_verification.hpp>
#include <fmt/format.h>

#include "transport/net/address.hpp"
#include "transport/net/connector.hpp"

namespace troupe::apps {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using core::Errc;
using SteadyTime = std::chrono::steady_clock;

ServiceClient::Connection::Connection(const ServiceAddress& address, const ClientLimits& limits, std::stop_token stop)
    : address_(address), limits_(limits), stop_(std::move(stop)) {}

template <class Start>
ServiceClient::Connection::Failure ServiceClient::Connection::run(std::chrono::milliseconds limit, const Start& start) {
  Failure result;
  bool ended = false, cancelled = false;
  beast::get_lowest_layer(tls_).expires_after(limit);
  start([&](Failure error, auto&&...) {
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

template <class Operation>
ServiceClient::Connection::Failure ServiceClient::Connection::on_stream(std::chrono::milliseconds limit,
                                                                        const Operation& operation) {
  if (address_.url.tls) return run(limit, [&](auto handler) { operation(tls_, std::move(handler)); });
  return run(limit, [&](auto handler) { operation(tls_.next_layer(), std::move(handler)); });
}

bool ServiceClient::Connection::is_end(const Failure& error) {
  return error == http::error::end_of_stream || error == http::error::partial_message || error == asio::error::eof ||
         error == asio::ssl::error::stream_truncated || error == asio::error::connection_reset ||
         error == asio::error::broken_pipe || error == asio::error::connection_aborted;
}

core::Error ServiceClient::Connection::explain(const Failure& error, std::string_view doing) const {
  if (stop_.stop_requested()) return {Errc::interrupted, "interrupted"};
  const auto where = fetch::authority(address_.url);
  if (error == beast::error::timeout) return {Errc::timeout, fmt::format("{}: no answer while {}", where, doing)};
  if (is_end(error)) return {Errc::peer_lost, fmt::format("{}: the connection ended while {}", where, doing)};
  if (error == asio::error::connection_refused)
    return {Errc::peer_lost, fmt::format("{}: no service listens there", where)};
  if (error.category() == http::make_error_code(http::error::bad_method).category())
    return {Errc::data, fmt::format("{}: its answer is no HTTP: {}", where, error.message())};
  return {Errc::peer_lost, fmt::format("{}: {} while {}", where, error.message(), doing)};
}

core::Result<void> ServiceClient::Connection::open() {
  if (auto reached = reach(); !reached || !address_.url.tls) return reached;
  return secure();
}

core::Result<void> ServiceClient::Connection::reach() {
  const auto& url = address_.url;
  const auto deadline = SteadyTime::now() + limits_.connect;
  const auto found = transport::find_addresses({url.host, url.port}, true, deadline, stop_);
  if (!found) return tl::unexpected(found.error());
  Failure error = asio::error::host_unreachable;
  for (std::size_t i = 0; i < found->size() && error && !stop_.stop_requested(); ++i) {
    const auto& address = (*found)[i];
    asio::ip::tcp::endpoint endpoint;
    endpoint.resize(address.size);
    std::memcpy(endpoint.data(), address.get(), address.size);
    // A silent address must not take the time of the next ones.
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyTime::now());
    const auto share = std::max(left / static_cast<int>(found->size() - i), std::chrono::milliseconds(1));
    auto& stream = beast::get_lowest_layer(tls_);
    stream.close();
    error = run(share, [&](auto handler) { stream.async_connect(endpoint, std::move(handler)); });
  }
  if (error || stop_.stop_requested()) return tl::unexpected(explain(error, "connecting"));
  return {};
}

core::Result<void> ServiceClient::Connection::secure() {
  const auto& url = address_.url;
  Failure error;
  if (address_.ca.empty())
    security_.set_default_verify_paths(error);  // without certificates the handshake fails, and says so
  else
    security_.load_verify_file(address_.ca, error);
  if (error && !address_.ca.empty())
    return core::fail(Errc::config,
                      fmt::format("--ca {}: no certificates can be read there: {}", address_.ca, error.message()));
  // The stream was made before: it has the context's store by reference, but not its verification.
  tls_.set_verify_mode(asio::ssl::verify_peer, error);
  tls_.set_verify_callback(asio::ssl::host_name_verification(url.host), error);
  if (!transport::is_numeric(url.host)) SSL_set_tlsext_host_name(tls_.native_handle(), url.host.c_str());
  SSL_set_min_proto_version(tls_.native_handle(), TLS1_2_VERSION);
  error = run(limits_.connect,
              [&](auto handler) { tls_.async_handshake(asio::ssl::stream_base::client, std::move(handler)); });
  if (!error) return {};
  if (stop_.stop_requested() || error == beast::error::timeout || is_end(error))
    return tl::unexpected(explain(error, "agreeing on TLS"));
  const long verified = SSL_get_verify_result(tls_.native_handle());
  return core::fail(
      Errc::config,
      fmt::format("{}: its certificate cannot be trusted, or it speaks no TLS: {}; --ca names the authority's file",
                  fetch::authority(url),
                  verified == X509_V_OK ? error.message() : X509_verify_cert_error_string(verified)));
}

ServiceClient::Connection::Failure ServiceClient::Connection::ask(const std::string& target, std::string_view accept,
                                                                  std::string_view last_id, Parser& parser) {
  const auto text = [](std::string_view view) { return beast::string_view(view.data(), view.size()); };
  http::request<http::empty_body> request(http::verb::get, target, 11);
  request.set(http::field::host, fetch::authority(address_.url));
  request.set(http::field::user_agent, "troupe");
  request.set(http::field::accept, text(accept));
  if (!address_.token.empty()) request.set(http::field::authorization, "Bearer " + address_.token);
  if (!last_id.empty()) request.set("Last-Event-ID", text(last_id));
  auto error = on_stream(limits_.connect,
                         [&](auto& stream, auto handler) { http::async_write(stream, request, std::move(handler)); });
  if (error) return error;
  return on_stream(limits_.answer, [&](auto& stream, auto handler) {
    http::async_read_header(stream, buffer_, parser, std::move(handler));
  });
}

ServiceClient::Connection::Failure ServiceClient::Connection::read(Parser& parser, std::chrono::milliseconds silence,
                                                                   const OnPiece& on_piece) {
  constexpr std::size_t kPiece = std::size_t{64} << 10;
  std::string piece(kPiece, '\0');
  while (!parser.is_done()) {
    auto& space = parser.get().body();
    space.data = piece.data();
    space.size = piece.size();
    space.more = true;
    auto error = on_stream(silence, [&](auto& stream, auto handler) {
      http::async_read_some(stream, buffer_, parser, std::move(handler));
    });
    if (error == http::error::need_buffer) error = {};
    if (const auto got = piece.size() - parser.get().body().size; got > 0)
      on_piece(std::string_view(piece.data(), got));
    if (error) return error;
  }
  return {};
}

}  // namespace troupe::apps
