#include <fmt/format.h>

#include "service/api/routes.hpp"
#include "service/options/config_check.hpp"
#include "service/options/option_json.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::service {
namespace {

Response list_options(const Request& request) {
  const auto strategy = request.query_value("strategy").value_or("");
  if (!strategy.empty() && strategies::find(strategy) == nullptr)
    return failure(400, "usage",
                   fmt::format("no strategy is called \"{}\"; GET /api/v1/strategies lists them", strategy));
  return answer({{"options", options_json(experiment::schema(), strategy)}});
}

Response check(const Request& request) {
  const auto body = request.json();
  if (!body) return failure(body.error());
  const auto text = config_text(*body);
  if (!text) return failure(text.error());
  return answer(json_of(check_config(*text)));
}

}  // namespace

void add_option_routes(Router& router, Context&) {
  router.add({.method = Method::get, .pattern = "/api/v1/options", .where = Where::files, .handler = list_options});
  router.add({.method = Method::post, .pattern = "/api/v1/check", .where = Where::files, .handler = check});
}

}  // namespace troupe::service
