#include "service/http/answering.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>
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

std::optional<Response> call(const std::function<std::optional<Response>()>& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return failure(500, core::name(core::Errc::out_of_memory), "memory ran out");
  } catch (const std::exception& error) {
    return failure(500, core::name(core::Errc::internal), fmt::format("internal error: {}", error.what()));
  }
}

}  // namespace

Response refusal_of(Welcome welcome) {
  return welcome == Welcome::too_many
             ? failure(503, "connections", "too many connections: try again later")
             : failure(429, "connections", "too many connections from this address: close some");
}

std::optional<Response> refusal_of(const boost::system::error_code& error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return failure(431, "usage", "the headers are too large");
  if (error && error.category() == http::make_error_code(http::error::bad_method).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message)
    return failure(400, "usage", "this is no HTTP request: " + error.message());
  return std::nullopt;
}

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

std::uint64_t most_body_bytes(const Request& request, std::uint64_t length, const Connections& connections) {
  const auto usual = connections.setup.limits.body_bytes;
  if (length <= usual) return usual;
  const auto match = connections.router.match(request.method, request.path);
  return match.route != nullptr && match.route->open_body ? match.route->body_bytes : usual;
}

void work_on_worker(Where where, Connections& connections, std::function<std::optional<Response>()> work,
                    std::function<void(std::optional<Response>)> done) {
  const auto found = connections.setup.workers.find(where);
  if (found == connections.setup.workers.end()) {
    auto response = call(work);
    work = nullptr;
    return done(std::move(response));
  }
  const auto posted =
      found->second->post([work = std::move(work), done, owner = connections.shared_from_this()]() mutable {
        // The answer is shared, as a task must be copyable.
        auto response = std::make_shared<std::optional<Response>>(call(work));
        work = nullptr;
        boost::asio::post(owner->io, [done, response] { done(std::move(*response)); });
      });
  if (posted) return;
  auto busy = failure(503, "busy", "too many requests wait: try again in a second");
  busy.headers.emplace_back("Retry-After", "1");
  done(std::move(busy));
}

void answer_on_worker(const Route& route, Request request, Connections& connections,
                      std::function<void(std::optional<Response>)> done) {
  const auto found = connections.setup.workers.find(route.where);
  if (found != connections.setup.workers.end()) request.stop = found->second->token();
  work_on_worker(
      route.where, connections,
      [&route, shared = std::make_shared<Request>(std::move(request))] { return route.handler(*shared); },
      std::move(done));
}

std::optional<Response> Upload::open(const Route& route, std::optional<std::uint64_t> length) {
  auto sink = route.open_body(request, length);
  if (!sink) return std::move(sink.error());
  request.sink = std::move(*sink);
  return std::nullopt;
}

std::optional<Response> Upload::write(std::size_t bytes) {
  return request.sink->write(std::string_view(piece).substr(0, bytes));
}

void let_go(std::shared_ptr<Upload>& upload, Connections& connections) {
  if (!upload) return;
  const auto found = connections.setup.workers.find(Where::uploads);
  // Without the worker, or when it has too much to do, it ends here.
  if (found != connections.setup.workers.end()) static_cast<void>(found->second->post([upload] {}));
  upload.reset();
}

}  // namespace troupe::service
