/// Decides whether a request may be answered. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/access/users.hpp"
#include "service/http/server.hpp"

namespace troupe::service {

inline constexpr std::string_view kCookie = "troupe_token";

/// Host (400), then for all that changes something and for streams of events the Origin (403), then the token (401) and the role (403).
/// A route without a role needs no token. With a cookie, which browsers also send for pages of others, a change needs an Origin.
/// `own_hosts`: hosts_of_service().
[[nodiscard]] Gate make_gate(std::shared_ptr<const Users> users, std::vector<std::string> own_hosts);

/// The value of a cookie; empty: there is none. Pure.
[[nodiscard]] std::string_view cookie_value(std::string_view header, std::string_view name);

}  // namespace troupe::service
