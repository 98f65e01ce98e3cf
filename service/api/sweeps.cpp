#include <fmt/format.h>

#include "service/api/answers.hpp"
#include "service/api/routes.hpp"
#include "service/runs/sweep_records.hpp"
#include "store/query/list.hpp"

namespace troupe::service {
namespace {

/// The store tells which directories are no runs: only these may be sweeps, and of many directories they are few.
Response list_sweeps(Context& context, const Request& /*request*/) {
  const auto store = context.store->fresh();
  if (!store) return failure(store.error());
  const auto names = store::folders_of((*store)->database());
  if (!names) return failure(names.error());
  auto list = context.sweeps->list(*names);
  return answer({{"sweeps", std::move(list.sweeps)}, {"problems", std::move(list.problems)}});
}

Response show_sweep(const Context& context, const Request& request) {
  const auto& name = request.parameter("name");
  const auto record = sweep_record(context.directory, name);
  if (!record) return failure(record.error());
  if (!*record) return failure(404, "unknown", fmt::format("{}: there is no such sweep", name));
  auto json = Json::parse(sweep::to_json(**record).dump());
  json["name"] = name;
  json["state"] = sweep_state(context.directory, name, (*record)->state);
  // Runs as the other routes name them: relative to the service's directory.
  for (auto& trial : json["trials"]) {
    const auto directory = trial["directory"].is_string() ? trial["directory"].get<std::string>() : std::string();
    trial["run"] = directory.empty() ? Json(nullptr) : Json(name + "/" + directory.substr(directory.rfind('/') + 1));
    trial.erase("directory");
  }
  json["history"] = Json::array();
  for (const auto& one : sweep::history(**record))
    json["history"].push_back({{"t", one.t},
                               {"epochs", one.epochs},
                               {"trial", one.trial},
                               {"rung", one.rung},
                               {"score", one.score ? Json(*one.score) : Json(nullptr)},
                               {"best", one.best ? Json(*one.best) : Json(nullptr)}});
  return answer(json);
}

}  // namespace

void add_sweep_routes(Router& router, Context& context) {
  router.add({.method = Method::get,
              .pattern = "/api/v1/sweeps",
              .where = Where::store,
              .handler = [&context](const Request& request) { return list_sweeps(context, request); }});
  router.add({.method = Method::get,
              .pattern = "/api/v1/sweeps/{name}",
              .where = Where::files,
              .handler = [&context](const Request& request) { return show_sweep(context, request); }});
}

}  // namespace troupe::service
