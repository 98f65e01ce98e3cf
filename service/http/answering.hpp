/// What happens to a request between its reading and the answer. Thread rule: the connections' thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/system/error_code.hpp>

#include "service/http/session.hpp"

namespace troupe::service {

/// What a client that is not served is told. REQUIRES that it is not Welcome::served.
[[nodiscard]] Response refusal_of(Welcome welcome);

/// What a client is told whose head could not be read; nothing: there is no error, or nobody to tell.
[[nodiscard]] std::optional<Response> refusal_of(const boost::system::error_code& error);

/// The head of what Beast has parsed. The body is taken later.
[[nodiscard]] Request request_of(const boost::beast::http::request<boost::beast::http::string_body>& parsed,
                                 const std::string& peer, bool secure);

/// Finds the route and applies rate limit and gate. Returns the refusal; nothing: `match` has a route, and `request` its parameters.
[[nodiscard]] std::optional<Response> admit(Request& request, Connections& connections, RouteMatch& match);

/// What may be the whole of a request: its length as the client says.
[[nodiscard]] std::uint64_t most_body_bytes(const Request& request, std::uint64_t length,
                                            const Connections& connections);

/// Runs `work` on the worker of `where` and destroys it there; then calls `done` once, on the connections' thread, unless that has stopped:
/// what `work` alone holds is gone before. An exception of `work` and a worker that has too much to do are answers.
void work_on_worker(Where where, Connections& connections, std::function<std::optional<Response>()> work,
                    std::function<void(std::optional<Response>)> done);

/// The same with the route's handler. The request and its sink are gone before `done`.
void answer_on_worker(const Route& route, Request request, Connections& connections,
                      std::function<void(std::optional<Response>)> done);

/// A body on its way to a sink. The connections' thread reads a piece, then a worker gives it to the sink, one after the other.
struct Upload {
  static constexpr std::size_t kPiece = std::size_t{256} << 10;

  Request request;
  std::string piece = std::string(kPiece, '\0');

  /// Makes the route's sink. Where::uploads, as write().
  [[nodiscard]] std::optional<Response> open(const Route& route, std::optional<std::uint64_t> length);
  /// The first bytes of `piece`.
  [[nodiscard]] std::optional<Response> write(std::size_t bytes);
};

/// Lets the worker end it: what came may be a large file, whose removal takes time. It may be null.
void let_go(std::shared_ptr<Upload>& upload, Connections& connections);

}  // namespace troupe::service
