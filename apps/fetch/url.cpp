#include "apps/fetch/url.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "transport/net/address.hpp"

namespace troupe::fetch {
namespace {

using core::Errc;
using core::fail;
using core::Result;

constexpr std::uint16_t kHttp = 80, kHttps = 443;
constexpr std::size_t kLongest = 8192;  // characters of an address

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

/// Without the scheme and its slashes; empty: another scheme.
std::optional<std::string_view> after_scheme(std::string_view text, std::string_view scheme) {
  if (text.size() < scheme.size() || lower(text.substr(0, scheme.size())) != scheme) return std::nullopt;
  return text.substr(scheme.size());
}

bool is_host(std::string_view host) {
  return !host.empty() && host.size() <= 253 && std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == ':';
  });
}

std::uint16_t usual_port(bool tls) { return tls ? kHttps : kHttp; }

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

/// Whether no_proxy lists the host: "*", its name, or a domain above it with or without a dot.
bool is_listed(std::string_view list, const std::string& host) {
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    auto entry = lower(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    std::erase(entry, ' ');
    if (entry == "*" || entry == host) return true;
    if (entry.starts_with('.')) entry.erase(0, 1);
    if (!entry.empty() && (host == entry || host.ends_with("." + entry))) return true;
  }
  return false;
}

}  // namespace

std::string authority(const Url& url) {
  const auto host = transport::bracketed(url.host);
  return url.port == usual_port(url.tls) ? host : fmt::format("{}:{}", host, url.port);
}

std::string to_text(const Url& url) {
  return fmt::format("{}://{}{}", url.tls ? "https" : "http", authority(url), url.target);
}

Result<Url> parse_url(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return fail(Errc::usage, fmt::format("\"{}\" is no web address: {}; write it like https://host/folder",
                                         text.substr(0, 200), why));
  };
  if (text.size() > kLongest) return refuse("it is too long");
  if (std::ranges::any_of(text, [](unsigned char c) { return c <= ' ' || c >= 0x7f; }))
    return refuse("it has a space or a special character");
  Url url;
  auto rest = after_scheme(text, "https://");
  url.tls = rest.has_value();
  if (!rest) rest = after_scheme(text, "http://");
  if (!rest) return refuse("it does not begin with https:// or http://");
  rest = rest->substr(0, rest->find('#'));
  const auto end = std::min(rest->find_first_of("/?"), rest->size());
  auto host = rest->substr(0, end);
  const auto target = rest->substr(end);
  if (host.find('@') != host.npos) return refuse("user names are not supported");
  url.port = usual_port(url.tls);
  const auto bracket = host.rfind(']');
  const auto colon = host.find(':', bracket == host.npos ? 0 : bracket);
  if (colon != host.npos) {
    const auto digits = host.substr(colon + 1);
    const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), url.port);
    if (error != std::errc{} || last != digits.data() + digits.size() || url.port == 0)
      return refuse("its port is not in 1 ... 65535");
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  url.host = lower(host);
  if (!is_host(url.host)) return refuse("it names no host");
  url.target = target.starts_with('/') ? std::string(target) : fmt::format("/{}", target);
  return url;
}

Url file_in(Url base, std::string_view name) {
  const auto path = path_of(base.target);
  const std::string query = base.target.substr(path.size());
  base.target = fmt::format("{}{}{}{}", path, path.ends_with('/') ? "" : "/", name, query);
  return base;
}

Result<Url> redirected(const Url& base, std::string_view location) {
  const auto parsed = [&](std::string_view text) {
    return parse_url(text).map_error([&](core::Error error) {
      return core::Error{Errc::data,
                         fmt::format("{} leads to an address that is none: {}", to_text(base), error.message)};
    });
  };
  const auto begins_absolute = location.find(':') < location.find_first_of("/?#");
  if (begins_absolute) return parsed(location);
  if (location.starts_with("//")) return parsed(fmt::format("{}:{}", base.tls ? "https" : "http", location));
  Url url = base;
  url.target.clear();
  const auto origin = to_text(url);
  if (location.starts_with('/')) return parsed(fmt::format("{}{}", origin, location));
  const auto path = path_of(base.target);
  if (location.empty() || location.starts_with('#')) return base;
  if (location.starts_with('?')) return parsed(fmt::format("{}{}{}", origin, path, location));
  const auto end = std::min(location.find_first_of("?#"), location.size());
  const auto joined = std::filesystem::path(path.substr(0, path.rfind('/') + 1)) / location.substr(0, end);
  return parsed(fmt::format("{}{}{}", origin, joined.lexically_normal().string(), location.substr(end)));
}

Result<std::optional<Url>> proxy_for(const Url& url, const Variable& variable) {
  const auto value = [&](std::initializer_list<const char*> names) -> std::pair<std::string_view, const char*> {
    for (const auto* name : names)
      if (const auto* text = variable(name); text != nullptr && *text != '\0') return {text, name};
    return {};
  };
  if (is_listed(value({"no_proxy", "NO_PROXY"}).first, url.host)) return std::nullopt;
  // A web server gives its scripts the request field "Proxy" as HTTP_PROXY.
  const auto [text, name] = url.tls ? value({"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})
                                    : value({"http_proxy", "all_proxy", "ALL_PROXY"});
  if (text.empty()) return std::nullopt;
  auto proxy = parse_url(text.find("://") == text.npos ? fmt::format("http://{}", text) : std::string(text));
  if (!proxy || proxy->tls)
    return fail(Errc::config, fmt::format("the environment's {} is no proxy that can be used: write it like "
                                          "http://host:3128, without a user name, or unset it",
                                          name));
  return std::optional(std::move(*proxy));
}

}  // namespace troupe::fetch
