#include <charconv>

#include "service/api/answers.hpp"
#include "service/api/routes.hpp"

namespace troupe::service {
namespace {

Response live_failure(const std::string& run, const core::Error& error) {
  return error.code == core::Errc::config ? no_such_run(run) : failure(error);
}

/// Where a stream of events begins: what the browser has seen last, or the client asks for; nothing: the end.
core::Result<std::optional<std::uint64_t>> begin_of(const Request& request) {
  auto text = std::string(request.header("last-event-id"));
  if (text.empty()) text = request.query_value("from").value_or("");
  if (text.empty()) return std::nullopt;
  std::uint64_t position = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), position);
  if (error != std::errc{} || end != text.data() + text.size())
    return core::fail(core::Errc::usage, "the position is no whole number: use the id of an event");
  return position;
}

Response events_answer(std::shared_ptr<EventQueue> queue) {
  Response response;
  response.type = "text/event-stream";
  response.headers = {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}};  // the latter is nginx's
  response.events = std::move(queue);
  return response;
}

}  // namespace

void add_live_routes(Router& router, Context& context) {
  router.add({.method = Method::get,
              .pattern = "/api/v1/runs/{run}/state",
              .where = Where::live,
              .handler = [&context](const Request& request) {
                const auto& run = request.parameter("run");
                auto state = context.live->state_text(run);
                if (!state) return live_failure(run, state.error());
                Response response;
                response.body = std::move(*state);
                return response;
              }});
  router.add({.method = Method::get,
              .pattern = "/api/v1/runs/{run}/events",
              .where = Where::live,
              .handler =
                  [&context](const Request& request) {
                    const auto& run = request.parameter("run");
                    const auto from = begin_of(request);
                    if (!from) return failure(from.error());
                    auto queue = context.live->subscribe(run, *from);
                    return queue ? events_answer(std::move(*queue)) : live_failure(run, queue.error());
                  },
              .events = true});
  router.add({.method = Method::get,
              .pattern = "/api/v1/events",
              .where = Where::io,
              .handler = [&context](const Request&) { return events_answer(context.events->subscribe()); },
              .events = true});
}

}  // namespace troupe::service
