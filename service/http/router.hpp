/// Which handler answers a method and a path. Built once, read-only afterwards; match() is thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/http/message.hpp"

namespace troupe::service {

/// The thread on which a handler runs. One that blocks must not run on `io`, which carries all connections.
enum class Where : std::uint8_t {
  io,        ///< the connections' thread: only what is in memory
  store,     ///< the thread that owns the run store
  files,     ///< reading and writing files
  archives,  ///< packing runs, which takes long
  live,      ///< the thread that follows running runs
  jobs,      ///< requests about jobs and nodes, which may wait for the disk
  uploads,   ///< writing bodies to files, piece by piece
  unpacking  ///< unpacking and opening what was uploaded, which takes long
};

/// May throw: the client gets 500. Runs on one thread, the route's.
using Handler = std::function<Response(const Request&)>;

/// Makes the sink of a request whose head was admitted, on Where::uploads, or refuses it. `length`: of the body, as the client says; nothing:
/// it does not.
using OpenBody = std::function<tl::expected<std::unique_ptr<BodySink>, Response>(const Request& request,
                                                                                 std::optional<std::uint64_t> length)>;

/// `pattern`: segments and {name} for any one segment: "/api/v1/runs/{run}/curves". GET answers HEAD, too.
struct Route {
  Method method = Method::get;
  std::string pattern;
  Role role = Role::read;
  Where where = Where::io;
  Handler handler;
  bool events = false;  // answers with server-sent events: the Origin is checked as for a change
  std::optional<std::chrono::milliseconds> answer_time{};  // until 503; nothing: Limits::answer_time
  OpenBody open_body{};          // set: the body goes to its sink, and the handler is called when all of it is there
  std::uint64_t body_bytes = 0;  // with open_body: more is 413
};

struct RouteMatch {
  const Route* route = nullptr;   // null: none
  bool malformed = false;         // the path cannot be one: no route is looked for
  std::vector<Method> allowed{};  // without a route: the methods that the path has; empty: no such path
  std::map<std::string, std::string, std::less<>> parameters{};
};

class Router {
 public:
  /// Throws std::logic_error if the method and pattern are there already, or the pattern does not begin with "/".
  void add(Route route);
  [[nodiscard]] RouteMatch match(Method method, std::string_view path) const;
  [[nodiscard]] const std::vector<Route>& routes() const noexcept { return routes_; }

 private:
  std::vector<Route> routes_;
  std::vector<std::vector<std::string>> segments_;  // of the routes
};

/// The segments of a path, decoded after they were divided at "/". Nothing where one cannot be a name: bad percent-encoding, no UTF-8,
/// control characters or backslashes, a part "." or "..", or an empty part of several.
[[nodiscard]] std::optional<std::vector<std::string>> path_segments(std::string_view path);

}  // namespace troupe::service
