/// A request and its answer, as handlers see them: without sockets and without the HTTP library. Thread rule: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_descriptor.hpp"
#include "service/http/event_queue.hpp"

namespace troupe::service {

using Json = nlohmann::ordered_json;

enum class Method : std::uint8_t { get, head, post, put, patch, del, options, other };
[[nodiscard]] std::string_view name(Method method) noexcept;  // "GET"

/// What a user may do; each role includes the ones before it. `none`: no token is needed.
enum class Role : std::uint8_t { none, read, run, admin };
[[nodiscard]] std::string_view name(Role role) noexcept;  // "read"

class BodySink;

struct Request {
  Method method = Method::get;
  std::string path;                                           // as it was sent, percent-encoded
  std::string query;                                          // the same, without "?"
  std::map<std::string, std::string, std::less<>> headers{};  // names in lower case; values of one name joined by ","
  std::string body{};
  std::string peer{};                                            // IP address
  bool secure = false;                                           // over TLS
  std::map<std::string, std::string, std::less<>> parameters{};  // of the route's pattern, decoded
  std::string user{};                                            // who asks; empty: no token was needed
  Role role = Role::none;
  std::stop_token stop{};            // the service ends
  std::shared_ptr<BodySink> sink{};  // has the body, in place of `body`, where the route has an open_body

  [[nodiscard]] std::string_view header(std::string_view lower_case) const;  // empty: it has none
  /// A named part of the path. REQUIRES that the route's pattern has it.
  [[nodiscard]] const std::string& parameter(std::string_view name) const;
  /// The values of `name` in the query, decoded, in order.
  [[nodiscard]] std::vector<std::string> query_values(std::string_view name) const;
  [[nodiscard]] std::optional<std::string> query_value(std::string_view name) const;  // the first
  /// A whole number of the query. Errc::usage: it is none, or out of bounds.
  [[nodiscard]] core::Result<std::int64_t> number(std::string_view name, std::int64_t otherwise, std::int64_t least,
                                                  std::int64_t most) const;
  /// The body as a JSON object. Errc::usage: it is none.
  [[nodiscard]] core::Result<Json> json() const;
};

/// A file that is sent from its beginning.
struct FileBody {
  core::FileDescriptor file;
  std::uint64_t bytes = 0;
};

/// One of `body`, `file` and `events` is sent.
struct Response {
  int status = 200;
  std::string type = "application/json";
  std::shared_ptr<const std::string> body{};
  std::vector<std::pair<std::string, std::string>> headers{};  // REQUIRES values without line ends
  std::shared_ptr<FileBody> file{};
  std::shared_ptr<EventQueue> events{};  // server-sent events until the queue ends
};

/// Takes a body that is too large for memory, piece by piece. One thread at a time. Its end drops what came, unless the handler has used it; the
/// answer leaves after that, unless it says that a deadline has passed.
class BodySink {
 public:
  virtual ~BodySink() = default;
  /// A refusal ends the request.
  [[nodiscard]] virtual std::optional<Response> write(std::string_view piece) = 0;
};

[[nodiscard]] Response answer(const Json& json, int status = 200);
[[nodiscard]] Response answer_text(std::string text, std::string type = "text/plain; charset=utf-8");
[[nodiscard]] Response answer_nothing();  // 204

/// `{"error": {"code", "message"}}`.
[[nodiscard]] Response failure(int status, std::string_view code, std::string_view message);
/// usage and config are the client's fault (400), timeout is 503, all others 500.
[[nodiscard]] Response failure(const core::Error& error);

/// Percent-decoded. Nothing: a "%" without two hexadecimal digits. `plus`: "+" is a blank, as in queries.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text, bool plus = false);
[[nodiscard]] std::string percent_encoded(std::string_view text);  // all but letters, digits, "-", ".", "_", "~"

}  // namespace troupe::service
