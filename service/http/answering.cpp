#include "service/http/answering.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>

#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe::service {
namespace {

namespace http = boost::beast::http;

Method method_of(http::verb verb) {
  switch (verb) {
    case http::verb::get: return Method::get;
    case http::verb::head: return Method::head;
    case http::verb::post: return Method::post;
    case http::verb::put: return Method::put;
    case http::verb::patch: return Method::patch;
    case http::verb::delete_: return Method::del;
    case http::verb::options: return Method::options;
    default: return Method::other;
  }
}

Response not_allowed(const std::vector<Method>& allowed) {
  auto response = failure(405, "method", "this path does not have the method");
  std::vector<std::string_view> names;
  for (const auto method : allowed) {
    names.push_back(name(method));
    if (method == Method::get) names.push_back(name(Method::head));
  }
  response.headers.emplace_back("Allow", fmt::format("{}", fmt::join(names, ", ")));
  return response;
}

Response call(const Route& route, const Request& request) {
  try {
    return route.handler(request);
  } catch (const std::bad_alloc&) {
    return failure(500, core::name(core::Errc::out_of_memory), "memory ran out");
  } catch (const std::exception& error) {
    return failure(500, core::name(core::Errc::internal), fmt::format("internal error: {}", error.what()));
  }
}

}  // namespace

Request request_of(const http::request<http::string_body>& parsed, const std::string& peer, bool secure) {
  Request request;
  request.method = method_of(parsed.method());
  const auto target = parsed.target();
  const auto mark = std::min(target.find('?'), target.size());
  request.path = std::string(target.substr(0, mark));
  request.query = mark < target.size() ? std::string(target.substr(mark + 1)) : std::string();
  for (const auto& field : parsed) {
    std::string key(field.name_string());
    std::ranges::transform(key, key.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    const std::string value(field.value());
    if (const auto [at, is_new] = request.headers.try_emplace(key, value); !is_new) at->second += "," + value;
  }
  request.peer = peer;
  request.secure = secure;
  return request;
}

std::optional<Response> admit(Request& request, Connections& connections, RouteMatch& match) {
  if (!connections.addresses.allow(request.peer, std::chrono::steady_clock::now())) {
    auto response = failure(429, "rate", "too many requests from this address: try again in a second");
    response.headers.emplace_back("Retry-After", "1");
    return response;
  }
  match = connections.router.match(request.method, request.path);
  if (connections.setup.gate)
    if (auto refusal = connections.setup.gate(request, match.route)) return refusal;
  if (match.malformed) return failure(400, "usage", "the path is malformed");
  // A value that cannot be read is not the same as none: a list without its filter would be another answer.
  if (!percent_decoded(request.query)) return failure(400, "usage", "the query has a % without two hexadecimal digits");
  if (match.route == nullptr)
    return match.allowed.empty() ? failure(404, "unknown", "there is no such path") : not_allowed(match.allowed);
  request.parameters = match.parameters;
  return std::nullopt;
}

void answer_on_worker(const Route& route, Request request, Connections& connections,
                      std::function<void(Response)> done) {
  const auto found = connections.setup.workers.find(route.where);
  if (found == connections.setup.workers.end()) return done(call(route, request));
  auto* const worker = found->second;
  request.stop = worker->token();
  // A task must be copyable.
  const auto shared = std::make_shared<Request>(std::move(request));
  const auto posted = worker->post([&route, shared, done, owner = connections.shared_from_this()] {
    auto response = std::make_shared<Response>(call(route, *shared));
    boost::asio::post(owner->io, [done, response] { done(std::move(*response)); });
  });
  if (posted) return;
  auto busy = failure(503, "busy", "too many requests wait: try again in a second");
  busy.headers.emplace_back("Retry-After", "1");
  done(std::move(busy));
}

}  // namespace troupe::service
