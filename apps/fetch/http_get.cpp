#include "apps/fetch/http_get.hpp"

#include <array>
#include <charconv>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "apps/fetch/http_connection.hpp"

namespace troupe::fetch {
namespace {

using core::Errc;

constexpr std::size_t kPiece = std::size_t{256} << 10;  // bytes
constexpr std::uint32_t kLongestHead = 64 << 10;

bool is_redirect(unsigned status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// Errors of a server that may be over a moment later.
bool passes(unsigned status) { return status == 408 || status == 429 || status >= 500; }

Head head_of(const HttpStream::Parser& parser) {
  const auto& answer = parser.get();
  Head head{.status = answer.result_int()};
  if (const auto length = parser.content_length()) head.length = *length;
  const auto field = answer[http::field::content_range];
  if (const auto range = parse_content_range({field.data(), field.size()}); range && head.status == 206) {
    head.first = range->first;
    head.total = range->total;
  }
  return head;
}

/// Passes the body on, also the part of one that ends early.
HttpResult<void> receive_body(HttpConnection& connection, HttpStream::Parser& parser, const Url& url,
                              const Receiver& receiver) {
  std::vector<char> piece(kPiece);
  while (!parser.is_done()) {
    auto& space = parser.get().body();
    space.data = piece.data();
    space.size = piece.size();
    space.more = true;
    const auto error = connection.read_some(parser);
    if (const auto got = piece.size() - parser.get().body().size; got > 0)
      if (auto taken = receiver.body({piece.data(), got}); !taken) return Failed(HttpError{taken.error(), false});
    if (error) return connection.explain(error, url, "sending the file");
  }
  return {};
}

/// One request. Returns where it leads, if it is answered with a redirect.
HttpResult<std::optional<Url>> ask(const Url& url, std::uint64_t first, const Receiver& receiver,
                                   const HttpOptions& options, const std::stop_token& stop) {
  const auto proxy = proxy_for(url, options.variable);
  if (!proxy) return Failed(HttpError{proxy.error(), false});
  HttpConnection connection(options, stop);
  if (auto connected = connection.connect(url, *proxy); !connected) return Failed(connected.error());

  HttpStream::Request request(http::verb::get, *proxy && !url.tls ? to_text(url) : url.target, 11);
  request.set(http::field::host, authority(url));
  request.set(http::field::user_agent, "troupe");
  request.set(http::field::accept_encoding, "identity");
  request.set(http::field::connection, "close");
  if (first > 0) request.set(http::field::range, fmt::format("bytes={}-", first));
  if (const auto error = connection.write(request)) return connection.explain(error, url, "sending the request");

  HttpStream::Parser parser;
  parser.header_limit(kLongestHead);
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());  // the receiver knows how long the file is
  if (const auto error = connection.read_head(parser)) return connection.explain(error, url, "waiting for the answer");
  const auto status = parser.get().result_int();
  if (is_redirect(status)) {
    const auto location = parser.get()[http::field::location];
    auto target = redirected(url, {location.data(), location.size()});
    if (!target) return Failed(HttpError{target.error(), false});
    if (url.tls && !target->tls)
      return lasting(Errc::data,
                     fmt::format("{} leads from https to {}: it is not followed", to_text(url), to_text(*target)));
    return std::optional(std::move(*target));
  }
  if (status != 200 && status != 206 && status != 416) {
    const auto reason = parser.get().reason();
    const auto text = fmt::format("{}: the server answers {} {}", to_text(url), status,
                                  std::string_view(reason.data(), std::min<std::size_t>(reason.size(), 80)));
    return passes(status) ? passing(Errc::peer_lost, text) : lasting(Errc::data, text);
  }
  if (auto taken = receiver.head(head_of(parser)); !taken) return Failed(HttpError{taken.error(), false});
  if (status != 416)
    if (auto received = receive_body(connection, parser, url, receiver); !received) return Failed(received.error());
  return std::nullopt;
}

std::optional<std::uint64_t> number(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc{} && end == digits.data() + digits.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

tl::expected<void, HttpError> http_get(const Url& url, std::uint64_t first, const Receiver& receiver,
                                       const HttpOptions& options, const std::stop_token& stop) {
  Url at = url;
  for (unsigned followed = 0; followed <= options.redirects; ++followed) {
    auto next = ask(at, first, receiver, options, stop);
    if (!next) return Failed(std::move(next.error()));
    if (!*next) return {};
    at = std::move(**next);
  }
  return lasting(Errc::data, fmt::format("{}: more than {} redirects, the last one to {}", to_text(url),
                                         options.redirects, to_text(at)));
}

std::optional<ContentRange> parse_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const auto dash = text.find('-'), slash = text.find('/');
  if (dash == text.npos || slash == text.npos || dash > slash) return std::nullopt;
  const auto first = number(text.substr(0, dash)), last = number(text.substr(dash + 1, slash - dash - 1));
  const auto total = number(text.substr(slash + 1));
  if (!first || !last || *last < *first || (!total && text.substr(slash + 1) != "*") || (total && *total <= *last))
    return std::nullopt;
  return ContentRange{*first, *last, total};
}

}  // namespace troupe::fetch
