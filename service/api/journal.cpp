#include "service/api/answers.hpp"
#include "service/api/routes.hpp"
#include "service/journal/event_list.hpp"

namespace troupe::service {
namespace {

constexpr std::int64_t kMostEvents = 1000, kMostNumber = 1'000'000'000'000'000;

Response show_journal(const Context& context, const Request& request) {
  const auto segment = request.number("segment", 0, 0, 1'000'000'000);
  const auto from = request.number("from", 0, 0, kMostNumber);
  const auto limit = request.number("limit", 100, 1, kMostEvents);
  const auto step = request.number("step", -1, 0, kMostNumber);
  for (const auto* given : {&segment, &from, &limit, &step})
    if (!*given) return failure(given->error());
  const auto found = list_events(context.directory,
                                 {.run = request.parameter("run"),
                                  .segment = *segment,
                                  .member = request.query_value("member").value_or(""),
                                  .step = *step < 0 ? std::nullopt : std::optional(*step),
                                  .from = *from,
                                  .limit = *limit},
                                 request.stop, context.journals);
  if (found) return answer(*found);
  if (found.error().code == core::Errc::config) {
    const bool no_segment = found.error().message.find("has no journal segment") != std::string::npos;
    return no_segment ? failure(404, "unknown", found.error().message) : no_such_run(request.parameter("run"));
  }
  return failure(found.error());
}

}  // namespace

void add_journal_routes(Router& router, Context& context) {
  router.add({.method = Method::get,
              .pattern = "/api/v1/runs/{run}/journal",
              .where = Where::files,
              .handler = [&context](const Request& request) { return show_journal(context, request); }});
}

}  // namespace troupe::service
