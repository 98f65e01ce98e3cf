#include <charconv>
#include <chrono>

#include <fmt/format.h>

#include "core/config/config.hpp"
#include "service/api/answers.hpp"
#include "service/api/routes.hpp"
#include "service/datasets/dataset_registry.hpp"
#include "store/query/list.hpp"

namespace troupe::service {
namespace {

/// The running runs that read this path.
core::Result<Json> used_by(store::RunStore& store, const DatasetEntry& entry) {
  auto runs = Json::array();
  if (entry.path.empty()) return runs;
  store::ListQuery query;
  query.columns = {"run"};
  query.conditions = {{.key = "status", .value = "running"}, {.key = "data.path", .value = entry.path}};
  const auto listing = store::list(store.database(), query);
  if (!listing && listing.error().code == core::Errc::usage) return runs;  // no run of the store has the key
  if (!listing) return tl::unexpected(listing.error());
  for (const auto& row : listing->rows)
    if (const auto* run = std::get_if<std::string>(&row.front())) runs.push_back(*run);
  return runs;
}

/// The first job that waits or runs, and whose configuration names this path: it may have no run yet.
core::Result<std::optional<std::int64_t>> job_of(Context& context, const DatasetEntry& entry) {
  if (context.runner == nullptr || entry.path.empty()) return std::nullopt;
  const auto jobs = context.runner->list();
  if (!jobs) return tl::unexpected(jobs.error());
  const auto path = core::to_toml(core::Value{entry.path});
  const auto literal = "'" + entry.path + "'";
  const auto names = [&](const JobSpec& spec) {
    return spec.config.find(path) != std::string::npos || spec.config.find(literal) != std::string::npos;
  };
  for (const auto& job : *jobs) {
    const bool is_over =
        job.state != JobState::queued && job.state != JobState::running && job.state != JobState::stopping;
    if (!is_over && names(job.spec)) return job.id;
  }
  return std::nullopt;
}

Response no_such_dataset(const std::string& name) {
  return failure(404, "unknown", fmt::format("there is no data set {}", name));
}

Response list_datasets(Context& context, const Request&) {
  const auto store = context.store->fresh();
  if (!store) return failure(store.error());
  auto rows = Json::array();
  for (const auto& entry : context.datasets->list()) {
    auto users = used_by(**store, entry);
    if (!users) return failure(users.error());
    rows.push_back(dataset_row(entry, std::move(*users)));
  }
  return answer(rows);
}

Response add_dataset(Context& context, const Request& request) {
  const auto body = request.json();
  if (!body) return failure(body.error());
  DatasetEntry entry;
  for (const auto& [key, to] : {std::pair{"name", &entry.name}, {"kind", &entry.kind}, {"path", &entry.path}}) {
    const auto value = body->value(key, Json(""));
    if (!value.is_string()) return failure(400, "usage", fmt::format("{}: it must be a string", key));
    *to = value.get<std::string>();
  }
  const auto resize = whole_number(body->value("resize", Json(0)));
  if (!resize) return failure(400, "usage", "resize: it must be a whole number of 64 bits");
  entry.resize = *resize;
  if (const auto added = context.datasets->add(entry); !added) return failure(added.error());
  return answer(dataset_row(entry, Json::array()), 201);
}

Response remove_dataset(Context& context, const Request& request) {
  const auto& name = request.parameter("name");
  const auto entry = context.datasets->find(name);
  if (!entry) return no_such_dataset(name);
  const auto store = context.store->current();
  if (!store) return failure(store.error());
  const auto users = used_by(**store, *entry);
  if (!users) return failure(users.error());
  if (!users->empty())
    return failure(409, "usage",
                   fmt::format("{} is used by {}: wait for its end, or stop it", name, (*users)[0].get<std::string>()));
  const auto job = job_of(context, *entry);
  if (!job) return failure(job.error());
  if (*job)
    return failure(409, "usage", fmt::format("{} is used by job {}: delete it, or wait for its end", name, **job));
  const auto removed = context.datasets->remove(name);
  if (!removed) return failure(removed.error());
  return *removed ? answer_nothing() : no_such_dataset(name);
}

Response show_dataset(Context& context, const Request& request) {
  const auto& name = request.parameter("name");
  const auto entry = context.datasets->find(name);
  if (!entry) return no_such_dataset(name);
  const auto facts = inspect(*entry);
  if (!facts) return failure(facts.error());
  auto store = store::RunStore::open(context.directory);  // not the other thread's
  if (!store) return failure(store.error());
  auto users = used_by(*store, *entry);
  if (!users) return failure(users.error());
  auto json = dataset_row(*entry, std::move(*users));
  json["classes"] = facts->classes;
  json["samples"] = {{"train", facts->train}, {"test", facts->test}};
  json["shape"] = {facts->channels, facts->height, facts->width};
  return answer(json);
}

Response show_sample(Context& context, const Request& request) {
  const auto& name = request.parameter("name");
  const auto& file = request.parameter("file");
  const auto entry = context.datasets->find(name);
  if (!entry) return no_such_dataset(name);
  std::int64_t index = -1;
  const auto [end, error] = std::from_chars(file.data(), file.data() + file.size(), index);
  const std::string_view rest(end, static_cast<std::size_t>(file.data() + file.size() - end));
  const auto missing = [&] { return failure(404, "unknown", fmt::format("{} has no sample {}", name, file)); };
  if (error != std::errc{} || rest != ".png") return missing();
  auto png = context.samples->png(*entry, index, std::chrono::steady_clock::now());
  if (!png) return failure(png.error());
  return *png ? answer_text(std::move(**png), "image/png") : missing();
}

}  // namespace

Json dataset_row(const DatasetEntry& entry, Json users) {
  return {{"name", entry.name},
          {"kind", entry.kind},
          {"path", entry.path},
          {"resize", entry.resize},
          {"uploaded", !entry.folder.empty()},
          {"used_by", std::move(users)}};
}

void add_dataset_routes(Router& router, Context& context) {
  const auto add = [&](Method method, const std::string& path, Role role, Where where,
                       Response (*handle)(Context&, const Request&)) {
    router.add({.method = method,
                .pattern = "/api/v1/datasets" + path,
                .role = role,
                .where = where,
                .handler = [&context, handle](const Request& request) { return handle(context, request); }});
  };
  add(Method::get, "", Role::read, Where::store, list_datasets);
  add(Method::post, "", Role::admin, Where::store, add_dataset);
  add(Method::get, "/{name}", Role::read, Where::files, show_dataset);
  add(Method::del, "/{name}", Role::admin, Where::store, remove_dataset);
  add(Method::get, "/{name}/samples/{file}", Role::read, Where::files, show_sample);
}

}  // namespace troupe::service
