/// Where a service is, and who asks: the arguments of commands that look at `troupe serve`. Thread rule: the main thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "apps/fetch/url.hpp"
#include "core/error.hpp"

namespace troupe::apps {

struct ServiceAddress {
  fetch::Url url;     // its target ends without a slash: "" or "/behind/a/proxy"
  std::string token;  // empty: none was given
  std::string ca;     // a file of authorities for https; empty: the system's
};

/// What the user gives beside the address.
struct ServiceAccess {
  std::string token_file;  // empty: the variable TROUPE_TOKEN
  std::string ca;          // empty: the variable TROUPE_CA, or the system's authorities
};

using EnvironmentVariable = std::function<const char*(const char*)>;

/// Whether `text` is meant as the address of a service, and not as a directory.
[[nodiscard]] bool is_service_address(std::string_view text);

/// Errc::usage: no address, or one with a token in it, which other users of this host can see; http:// beyond this host, which would show
/// the token to the network. Errc::config: the token's file cannot be read or has none.
[[nodiscard]] core::Result<ServiceAddress> service_address(std::string_view text, const ServiceAccess& access,
                                                           const EnvironmentVariable& variable);

}  // namespace troupe::apps
