#include "apps/client/service_connection.hpp"

#include <fmt/format.h>

namespace troupe::apps {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using core::Errc;
using fetch::HttpStream;

ServiceClient::Connection::Connection(const ServiceAddress& address, const ClientLimits& limits, std::stop_token stop)
    : address_(address), limits_(limits), stream_(std::move(stop)) {}

core::Error ServiceClient::Connection::explain(const Failure& error, std::string_view doing) const {
  if (stream_.stopped()) return {Errc::interrupted, "interrupted"};
  const auto where = fetch::authority(address_.url);
  if (error == beast::error::timeout) return {Errc::timeout, fmt::format("{}: no answer while {}", where, doing)};
  if (HttpStream::is_end(error))
    return {Errc::peer_lost, fmt::format("{}: the connection ended while {}", where, doing)};
  if (error == asio::error::connection_refused)
    return {Errc::peer_lost, fmt::format("{}: no service listens there", where)};
  if (HttpStream::is_no_http(error))
    return {Errc::data, fmt::format("{}: its answer is no HTTP: {}", where, error.message())};
  return {Errc::peer_lost, fmt::format("{}: {} while {}", where, error.message(), doing)};
}

core::Result<void> ServiceClient::Connection::open() {
  const auto error = stream_.reach(address_.url, limits_.connect);
  if (!error) return tl::unexpected(error.error());
  if (*error) return tl::unexpected(explain(*error, "connecting"));
  return address_.url.tls ? secure() : core::Result<void>();
}

core::Result<void> ServiceClient::Connection::secure() {
  if (!address_.ca.empty())
    if (const auto error = stream_.trust(address_.ca))
      return core::fail(Errc::config,
                        fmt::format("--ca {}: no certificates can be read there: {}", address_.ca, error.message()));
  const auto error = stream_.secure(address_.url.host, limits_.connect);
  if (!error) return {};
  if (stream_.stopped() || error == beast::error::timeout || HttpStream::is_end(error))
    return tl::unexpected(explain(error, "agreeing on TLS"));
  return core::fail(
      Errc::config,
      fmt::format("{}: its certificate cannot be trusted, or it speaks no TLS: {}; --ca names the authority's file",
                  fetch::authority(address_.url), stream_.distrust(error)));
}

ServiceClient::Connection::Failure ServiceClient::Connection::ask(const std::string& target, std::string_view accept,
                                                                  std::string_view last_id, Parser& parser) {
  const auto text = [](std::string_view view) { return beast::string_view(view.data(), view.size()); };
  HttpStream::Request request(http::verb::get, target, 11);
  request.set(http::field::host, fetch::authority(address_.url));
  request.set(http::field::user_agent, "troupe");
  request.set(http::field::accept, text(accept));
  if (!address_.token.empty()) request.set(http::field::authorization, "Bearer " + address_.token);
  if (!last_id.empty()) request.set("Last-Event-ID", text(last_id));
  if (const auto error = stream_.write(request, limits_.connect)) return error;
  return stream_.read_head(parser, limits_.answer);
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
    const auto error = stream_.read_some(parser, silence);
    if (const auto got = piece.size() - parser.get().body().size; got > 0)
      on_piece(std::string_view(piece.data(), got));
    if (error) return error;
  }
  return {};
}

}  // namespace troupe::apps
