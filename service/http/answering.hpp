/// What happens to a request between its reading and the answer. Thread rule: the connections' thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include "service/http/connections.hpp"

namespace troupe::service {

/// The head of what Beast has parsed. The body is taken later.
[[nodiscard]] Request request_of(const boost::beast::http::request<boost::beast::http::string_body>& parsed,
                                 const std::string& peer, bool secure);

/// Finds the route and applies rate limit and gate. Returns the refusal; nothing: `match` has a route, and `request` its parameters.
[[nodiscard]] std::optional<Response> admit(Request& request, Connections& connections, RouteMatch& match);

/// Runs the route's handler on its worker; then calls `done` once, on the connections' thread, unless that has stopped.
void answer_on_worker(const Route& route, Request request, Connections& connections,
                      std::function<void(Response)> done);

}  // namespace troupe::service
