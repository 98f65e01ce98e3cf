#include "apps/fetch/http_stream.hpp"

#include <algorithm>
#include <cstring>

#include <boost/asio/ssl/host_name_verification.hpp>

#include "transport/net/address.hpp"
#include "transport/net/connector.hpp"

namespace troupe::fetch {

/// Starts an operation with a completion handler, and runs until it has ended.
template <class Start>
SystemError HttpStream::run(std::chrono::milliseconds limit, const Start& start) {
  constexpr std::chrono::milliseconds kHeardWithin{50};
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
    if (stopped() && !std::exchange(cancelled, true)) beast::get_lowest_layer(tls_).cancel();
  }
  return result;
}

template <class Operation>
SystemError HttpStream::on_stream(std::chrono::milliseconds limit, const Operation& operation) {
  if (secured_) return run(limit, [&](auto handler) { operation(tls_, std::move(handler)); });
  return run(limit, [&](auto handler) { operation(tls_.next_layer(), std::move(handler)); });
}

core::Result<SystemError> HttpStream::reach(const Url& host, std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + limit;
  const auto found = transport::find_addresses({host.host, host.port}, true, deadline, stop_);
  if (!found) return tl::unexpected(found.error());
  SystemError error = asio::error::host_unreachable;
  for (std::size_t i = 0; i < found->size() && error && !stopped(); ++i) {
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
  }
  if (stopped()) return SystemError(asio::error::operation_aborted);
  return error;
}

SystemError HttpStream::trust(const std::string& file) {
  SystemError error;
  security_.load_verify_file(file, error);
  has_authorities_ = !error;
  return error;
}

SystemError HttpStream::secure(const std::string& host, std::chrono::milliseconds limit) {
  SystemError error;
  if (!has_authorities_) security_.set_default_verify_paths(error);  // without any the handshake fails, and says so
  // The stream was made with the context: it has its store by reference, but neither its verification nor its versions.
  tls_.set_verify_mode(asio::ssl::verify_peer, error);
  tls_.set_verify_callback(asio::ssl::host_name_verification(host), error);
  if (!transport::is_numeric(host)) SSL_set_tlsext_host_name(tls_.native_handle(), host.c_str());
  SSL_set_min_proto_version(tls_.native_handle(), TLS1_2_VERSION);
  error = run(limit, [&](auto handler) { tls_.async_handshake(asio::ssl::stream_base::client, std::move(handler)); });
  secured_ = !error;
  return error;
}

std::string HttpStream::distrust(const SystemError& error) const {
  // native_handle() changes nothing, and is not const in Beast.
  const long verified = SSL_get_verify_result(const_cast<HttpStream*>(this)->tls_.native_handle());
  return verified == X509_V_OK ? error.message() : X509_verify_cert_error_string(verified);
}

SystemError HttpStream::write(const Request& request, std::chrono::milliseconds limit) {
  return on_stream(limit, [&](auto& stream, auto handler) { http::async_write(stream, request, std::move(handler)); });
}

SystemError HttpStream::read_head(Parser& parser, std::chrono::milliseconds limit) {
  return on_stream(
      limit, [&](auto& stream, auto handler) { http::async_read_header(stream, buffer_, parser, std::move(handler)); });
}

SystemError HttpStream::read_some(Parser& parser, std::chrono::milliseconds limit) {
  const auto error = on_stream(
      limit, [&](auto& stream, auto handler) { http::async_read_some(stream, buffer_, parser, std::move(handler)); });
  return error == http::error::need_buffer ? SystemError{} : error;  // the parser's space is full
}

bool HttpStream::is_end(const SystemError& error) {
  return error == http::error::end_of_stream || error == http::error::partial_message || error == asio::error::eof ||
         error == asio::ssl::error::stream_truncated || error == asio::error::connection_reset ||
         error == asio::error::broken_pipe || error == asio::error::connection_aborted;
}

bool HttpStream::is_no_http(const SystemError& error) {
  return error.category() == http::make_error_code(http::error::bad_method).category();
}

}  // namespace troupe::fetch
