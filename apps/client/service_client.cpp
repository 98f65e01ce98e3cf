#include "apps/client/service_client.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "apps/client/service_connection.hpp"
#include "core/text/display.hpp"

namespace troupe::apps {
namespace {

namespace http = boost::beast::http;
using core::Errc;

/// The error of an answer that is none of 200: its message, if it has one.
core::Error refusal(const fetch::Url& url, unsigned status, const std::string& body) {
  const auto where = fetch::authority(url);
  const auto json = nlohmann::ordered_json::parse(body, nullptr, false);
  std::string said;
  if (json.is_object() && json.contains("error") && json["error"].is_object())
    said = core::printable(json["error"].value("message", std::string()));
  constexpr std::size_t kMostSaid = 300;
  said.resize(std::min(said.size(), kMostSaid));
  if (status == 401)
    return {Errc::config, fmt::format("{}: the service wants a token, or another one: --token-file or TROUPE_TOKEN; "
                                      "`troupe serve --add-user NAME` makes one",
                                      where)};
  const auto text = said.empty() ? fmt::format("{}: the service answers {}", where, status)
                                 : fmt::format("{}: the service answers {}: {}", where, status, said);
  if (status == 429 || status >= 500) return {Errc::peer_lost, text};
  if (status < 400) return {Errc::data, text + " where JSON was asked for: is it the address of `troupe serve`?"};
  return {Errc::config, text};
}

}  // namespace

bool may_pass(const core::Error& error) noexcept {
  return error.code == Errc::peer_lost || error.code == Errc::timeout;
}

ServiceClient::ServiceClient(ServiceAddress address, std::stop_token stop, const ClientLimits& limits)
    : address_(std::move(address)), stop_(std::move(stop)), limits_(limits) {}
ServiceClient::~ServiceClient() = default;

core::Result<nlohmann::ordered_json> ServiceClient::get(std::string_view path) {
  const auto target = address_.url.target + std::string(path);
  for (;;) {
    const bool kept = connection_ != nullptr;
    if (!kept) {
      connection_ = std::make_unique<Connection>(address_, limits_, stop_);
      if (auto opened = connection_->open(); !opened) {
        connection_.reset();
        return tl::unexpected(std::move(opened.error()));
      }
    }
    Connection::Parser parser;
    parser.body_limit(limits_.most_bytes);
    auto error = connection_->ask(target, "application/json", {}, parser);
    // A connection that was kept may have ended meanwhile: that is no failure of the service.
    if (error && kept && fetch::HttpStream::is_end(error) && !stop_.stop_requested()) {
      connection_.reset();
      continue;
    }
    std::string body;
    if (!error) error = connection_->read(parser, limits_.answer, [&](std::string_view piece) { body += piece; });
    if (error) {
      auto explained =
          error == http::error::body_limit
              ? core::Error{Errc::data, fmt::format("{}: its answer to {} has more than {} bytes",
                                                    fetch::authority(address_.url), path, limits_.most_bytes)}
              : connection_->explain(error, "answering " + std::string(path));
      connection_.reset();
      return tl::unexpected(std::move(explained));
    }
    const auto status = parser.get().result_int();
    if (!parser.keep_alive()) connection_.reset();
    if (status != 200) return tl::unexpected(refusal(address_.url, status, body));
    auto json = nlohmann::ordered_json::parse(body, nullptr, false);
    if (json.is_discarded())
      return core::fail(Errc::data, fmt::format("{}: its answer to {} is no JSON: is it the address of `troupe serve`?",
                                                fetch::authority(address_.url), path));
    return json;
  }
}

core::Result<void> ServiceClient::follow(std::string_view path, std::string& last_id, const OnEvent& on_event) {
  Connection connection(address_, limits_, stop_);
  if (auto opened = connection.open(); !opened) return opened;
  Connection::Parser parser;
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());
  const auto target = address_.url.target + std::string(path);
  if (const auto error = connection.ask(target, "text/event-stream", last_id, parser))
    return tl::unexpected(connection.explain(error, "answering " + std::string(path)));
  const auto status = parser.get().result_int();
  if (status != 200) {
    std::string body;
    static_cast<void>(connection.read(parser, limits_.answer, [&](std::string_view piece) {
      body += piece.substr(0, limits_.most_bytes - std::min(limits_.most_bytes, body.size()));
    }));
    return tl::unexpected(refusal(address_.url, status, body));
  }
  EventText events(last_id);
  const auto error = connection.read(parser, limits_.silence, [&](std::string_view piece) {
    events.read(piece, [&](const ServerEvent& event) {
      if (stop_.stop_requested()) return;
      last_id = event.id;
      on_event(event);
    });
  });
  if (error) return tl::unexpected(connection.explain(error, "sending events"));
  return core::fail(Errc::peer_lost, fmt::format("{}: the stream of events ended", fetch::authority(address_.url)));
}

std::string encoded_segment(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (plain)
      encoded += c;
    else
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

}  // namespace troupe::apps
