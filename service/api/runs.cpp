#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "service/api/answers.hpp"
#include "service/api/routes.hpp"
#include "service/runs/run_rows.hpp"
#include "store/query/details.hpp"
#include "store/query/export.hpp"
#include "store/removal.hpp"
#include "store/run_directory.hpp"

namespace troupe::service {
namespace {

constexpr std::int64_t kMostRows = 1000, kMostCompared = 200;

Response list_runs(Context& context, const Request& request) {
  store::ListQuery query;
  const auto filter = request.query_value("filter").value_or("");
  auto conditions = store::parse_filter(filter);
  if (!conditions) return query_failure(conditions.error());
  query.conditions = std::move(*conditions);
  query.columns = query_list(request, "columns");
  if (const auto sort = request.query_value("sort"); sort && !sort->empty()) query.sort = *sort;
  const auto descending = request.query_value("descending").value_or("1");
  query.ascending = descending == "0" || descending == "false";
  const auto limit = request.number("limit", 50, 1, kMostRows);
  const auto offset = request.number("offset", 0, 0, 1'000'000'000);
  if (!limit) return failure(limit.error());
  if (!offset) return failure(offset.error());
  query.limit = *limit;
  query.offset = *offset;
  const auto store = context.store->fresh();
  if (!store) return failure(store.error());
  const auto rows = run_rows(context.jobs, **store, std::move(query));
  if (!rows) return query_failure(rows.error());
  return answer({{"runs", rows->rows}, {"total", rows->total}});
}

Json details_json(const Context& context, const store::RunDetails& run) {
  auto json = Json::parse(store::json_line(run, {}), nullptr, false);
  json.erase("curves");
  json["problem"] = run.problem;
  json["grid"] = run.grid;
  json["job"] = job_of_run(context.jobs, run.path);
  json["directory"] = context.directory + "/" + run.path;
  const bool resumed = std::ranges::any_of(run.lineage, [](const auto& one) { return one.first == "sessions"; });
  const auto line = started_line(context.directory, run.path, resumed);
  json["parameters"] = line.is_object() ? line.value("parameters", Json()) : Json(nullptr);
  json["started_line"] = line;
  return json;
}

core::Result<store::RunDetails> details_of(const OpenRun& run) {
  const store::Snapshot moment(run.store->database());  // a look may write meanwhile
  return store::details_of(run.store->database(), run.id);
}

Response show_run(Context& context, const Request& request) {
  const auto run = open_run(context, request);
  if (!run) return run.error();
  const auto details = details_of(*run);
  if (!details) return failure(details.error());
  return answer(details_json(context, *details));
}

Response compare_runs(Context& context, const Request& request) {
  const auto names = request.query_values("run");
  if (names.size() < 2 || names.size() > kMostCompared)
    return failure(400, "usage", fmt::format("compare needs 2 to {} runs, not {}", kMostCompared, names.size()));
  std::vector<store::RunDetails> runs;
  for (const auto& name : names) {
    const auto run = open_run(context, name);
    if (!run) return run.error();
    auto details = details_of(*run);
    if (!details) return failure(details.error());
    runs.push_back(std::move(*details));
  }
  const auto differing = store::differing_keys(runs);
  auto list = Json::array();
  for (const auto& run : runs) {
    auto options = Json::object();
    for (const auto& key : differing) {
      const auto* value = store::find(run.options, key);
      options[key] = value == nullptr ? Json(nullptr) : json_of(*value);
    }
    auto summary = Json::parse(run.summary, nullptr, false);
    list.push_back({{"run", run.path},
                    {"name", run.name},
                    {"status", run.status},
                    {"options", options},
                    {"summary", summary.is_discarded() ? Json(nullptr) : std::move(summary)}});
  }
  return answer({{"differ", differing}, {"runs", list}});
}

/// What the body wants of the notes. Errc::usage.
core::Result<store::RunStore::Change> wanted_change(const Request& request) {
  const auto body = request.json();
  if (!body) return tl::unexpected(body.error());
  std::optional<std::vector<std::string>> tags;
  std::optional<std::string> note;
  if (body->contains("tags")) {
    tags.emplace();
    const auto& given = (*body)["tags"];
    if (!given.is_array()) return core::fail(core::Errc::usage, "tags: it must be a list of strings");
    for (const auto& one : given) {
      if (!one.is_string()) return core::fail(core::Errc::usage, "tags: it must be a list of strings");
      if (auto checked = store::check_tag(one.get<std::string>()); !checked) return tl::unexpected(checked.error());
      tags->push_back(one);
    }
    std::ranges::sort(*tags);
    tags->erase(std::unique(tags->begin(), tags->end()), tags->end());
  }
  if (body->contains("note")) {
    if (!(*body)["note"].is_string()) return core::fail(core::Errc::usage, "note: it must be a string");
    note = (*body)["note"].get<std::string>();
    if (note->size() > store::kLongestNote)
      return core::fail(core::Errc::usage, fmt::format("a note has at most {} bytes", store::kLongestNote));
  }
  if (!tags && !note) return core::fail(core::Errc::usage, "the body has neither tags nor a note");
  return [tags, note](store::RunNotes& notes) {
    if (tags) notes.tags = *tags;
    if (note) notes.note = *note;
  };
}

Response change_notes(Context& context, const Request& request) {
  const auto change = wanted_change(request);
  if (!change) return failure(change.error());
  const auto run = open_run(context, request);
  if (!run) return run.error();
  // The store's rows may be of a directory that is gone, or is a link now.
  const auto directory = store::open_run_directory(context.directory, run->path);
  if (!directory) return no_such_run(run->path);
  const auto notes = run->store->change_notes(run->path, *change);
  if (!notes) return failure(notes.error());
  return answer({{"tags", notes->tags}, {"note", notes->note}});
}

Response remove_run_of(Context& context, const Request& request) {
  const auto run = open_run(context, request);
  if (!run) return run.error();
  const auto removed = store::remove_run(*run->store, run->path);
  context.store->expire();
  if (removed) return answer_nothing();
  if (removed.error().code == core::Errc::timeout) return failure(409, "timeout", removed.error().message);
  return failure(removed.error());
}

}  // namespace

void add_run_routes(Router& router, Context& context) {
  const auto add = [&](Method method, const char* pattern, Role role, auto handler) {
    router.add({.method = method,
                .pattern = pattern,
                .role = role,
                .where = Where::store,
                .handler = [&context, handler](const Request& request) { return handler(context, request); }});
  };
  add(Method::get, "/api/v1/runs", Role::read, list_runs);
  add(Method::get, "/api/v1/runs/{run}", Role::read, show_run);
  add(Method::del, "/api/v1/runs/{run}", Role::admin, remove_run_of);
  add(Method::put, "/api/v1/runs/{run}/notes", Role::run, change_notes);
  add(Method::get, "/api/v1/compare", Role::read, compare_runs);
}

}  // namespace troupe::service
