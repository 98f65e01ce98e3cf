#include "service/access/gate.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "service/access/origin.hpp"

namespace troupe::service {
namespace {

bool only_reads(Method method) { return method == Method::get || method == Method::head; }

Response no_token() {
  auto response = failure(401, "token", "no token, or a wrong one: send \"Authorization: Bearer TOKEN\"");
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

std::optional<Response> check_origin(const Request& request, const Route* route) {
  if (only_reads(request.method) && (route == nullptr || !route->events)) return std::nullopt;
  const auto origin = request.header("origin");
  if (!origin.empty() && !is_same_origin(origin, request.header("host")))
    return failure(403, "origin", "the request comes from a page of another site");
  return std::nullopt;
}

}  // namespace

std::string_view cookie_value(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    auto one = header.substr(0, header.find_first_of(";,"));
    header.remove_prefix(std::min(one.size() + 1, header.size()));
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=')
      return one.substr(name.size() + 1);
  }
  return {};
}

Gate make_gate(std::shared_ptr<const Users> users, std::vector<std::string> own_hosts) {
  return [users = std::move(users), own = std::move(own_hosts)](Request& request,
                                                                const Route* route) -> std::optional<Response> {
    if (!is_own_host(request.header("host"), own))
      return failure(400, "host", "the service is not known under this Host: start it with --host NAME");
    if (auto refusal = check_origin(request, route)) return refusal;
    if (route == nullptr || route->role == Role::none) return std::nullopt;
    constexpr std::string_view kBearer = "Bearer ";
    const auto authorization = request.header("authorization");
    const bool by_header = authorization.starts_with(kBearer);
    const auto token =
        by_header ? authorization.substr(kBearer.size()) : cookie_value(request.header("cookie"), kCookie);
    if (token.empty()) return no_token();
    const auto user = users->find(token, std::chrono::steady_clock::now());
    if (!user) return no_token();
    if (!by_header && !only_reads(request.method) && request.header("origin").empty())
      return failure(403, "origin", "a change with a cookie needs the Origin header");
    request.user = user->name;
    request.role = user->role;
    if (user->role < route->role)
      return failure(
          403, "role",
          fmt::format("{} has the role {}, and this needs {}", user->name, name(user->role), name(route->role)));
    return std::nullopt;
  };
}

}  // namespace troupe::service
