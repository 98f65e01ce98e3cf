#include "service/api/answers.hpp"
#include "service/api/routes.hpp"
#include "store/run_directory.hpp"

namespace troupe::service {
namespace {

constexpr std::size_t kMostOverrides = 16;

Response show_forecast(Context& context, const Request& request) {
  ForecastQuestion question{.run = request.parameter("run"),
                            .strategy = request.query_value("strategy").value_or(""),
                            .overrides = request.query_values("set")};
  if (question.overrides.size() > kMostOverrides) return failure(400, "usage", "too many values of set");
  if (const auto checked = check_question(question); !checked) return failure(400, "usage", checked.error().message);
  if (const auto directory = store::open_run_directory(context.directory, question.run); !directory)
    return directory.error().code == core::Errc::config ? no_such_run(question.run) : failure(directory.error());
  const auto found = context.forecasts->ask(question);
  if (!found) return failure(503, "timeout", found.error().message);
  if (!found->result) {
    auto waiting = answer(Json{{"run", question.run}, {"pending", true}});
    waiting.status = 202;
    return waiting;
  }
  const auto& result = *found->result;
  if (!result) {
    const auto& error = result.error();
    if (error.code == core::Errc::data) return failure(409, "data", error.message);  // nothing to forecast from yet
    return error.code == core::Errc::config || error.code == core::Errc::usage
               ? failure(400, std::string(core::name(error.code)), error.message)
               : failure(error);
  }
  auto json = *result;
  json["pending"] = found->pending;
  return answer(json);
}

}  // namespace

void add_forecast_routes(Router& router, Context& context) {
  router.add({.method = Method::get,
              .pattern = "/api/v1/runs/{run}/forecast",
              .where = Where::files,
              .handler = [&context](const Request& request) { return show_forecast(context, request); }});
}

}  // namespace troupe::service
