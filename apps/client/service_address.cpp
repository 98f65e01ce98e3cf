#include "apps/client/service_address.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/text/read_text.hpp"
#include "transport/net/address.hpp"

namespace troupe::apps {
namespace {

/// Without blanks and ends of lines around it.
std::string bare(std::string_view text) {
  constexpr auto kAround = " \t\r\n";
  const auto begin = std::min(text.find_first_not_of(kAround), text.size());
  return std::string(text.substr(begin, text.find_last_not_of(kAround) + 1 - begin));
}

std::string environment_text(const EnvironmentVariable& variable, const char* name) {
  const char* value = variable(name);
  return value == nullptr ? std::string() : bare(value);
}

core::Result<std::string> token_of(const ServiceAccess& access, const EnvironmentVariable& variable) {
  if (access.token_file.empty()) return environment_text(variable, "TROUPE_TOKEN");
  auto text = core::read_text("token", access.token_file);
  if (!text) return tl::unexpected(std::move(text.error()));
  auto token = bare(std::string_view(*text).substr(0, text->find('\n')));
  if (token.empty())
    return core::fail(core::Errc::config, fmt::format("{}: its first line has no token", access.token_file));
  return token;
}

/// What a header can carry.
bool is_token(std::string_view token) {
  return std::ranges::all_of(token, [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

bool is_service_address(std::string_view text) { return text.starts_with("http://") || text.starts_with("https://"); }

core::Result<ServiceAddress> service_address(std::string_view text, const ServiceAccess& access,
                                             const EnvironmentVariable& variable) {
  if (text.find("token=") != text.npos)
    return core::fail(core::Errc::usage,
                      "the address has a token in it, which other users of this host can see: put the token into a "
                      "file for --token-file, or into TROUPE_TOKEN, and leave it out of the address");
  auto url = fetch::parse_url(text);
  if (!url) return tl::unexpected(std::move(url.error()));
  if (!url->tls && url->host != "localhost" && !transport::is_loopback(url->host))
    return core::fail(core::Errc::usage,
                      fmt::format("{}: http:// would show the token to the network: use https://, or a tunnel (`ssh -L "
                                  "8080:127.0.0.1:8080 {}`)",
                                  text, url->host));
  url->target.erase(std::min(url->target.find('?'), url->target.size()));
  while (url->target.ends_with('/')) url->target.pop_back();
  auto token = token_of(access, variable);
  if (!token) return tl::unexpected(std::move(token.error()));
  if (!is_token(*token)) return core::fail(core::Errc::config, "the token has a blank or another character in it");
  auto ca = access.ca.empty() ? environment_text(variable, "TROUPE_CA") : access.ca;
  return ServiceAddress{.url = std::move(*url), .token = std::move(*token), .ca = std::move(ca)};
}

}  // namespace troupe::apps
